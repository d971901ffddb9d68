package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// SourceConfig describes a source for NewPipeline. MakeTCPSourceConfig and MakeKafkaSourceConfig return one.
type SourceConfig interface {
	source() *declaration.Source
}

// declaredSource is the common part of the configs of sources: the declaration of the source.
type declaredSource struct{ declared declaration.Source }

func (c *declaredSource) source() *declaration.Source {
	source := c.declared
	return &source
}

// TCPSourceConfig is a source that listens for TCP connections.
type TCPSourceConfig struct{ declaredSource }

// MakeTCPSourceConfig describes a source that listens at host and port, e.g. "127.0.0.1" and "7010". With port "0" it
// listens at any free port. The decoder must be a wallarooapi.FramedDecoder or a wallarooapi.LineDecoder (T223). An
// unusable address is reported (T211). A run also reports two sources with one address (T203).
func MakeTCPSourceConfig(host string, port string, decoder wa.Decoder) *TCPSourceConfig {
	return &TCPSourceConfig{declaredSource{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: decoder}}}
}

// OnError sets the policy for messages on which the decoder fails: "dead_letter" or "fail" (see Application.OnError).
// The default is the application's policy. OnError returns the config.
func (c *TCPSourceConfig) OnError(policy string) *TCPSourceConfig {
	c.declared.OnError = policy
	return c
}

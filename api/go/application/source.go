package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// SourceConfig is a source of messages. MakeTCPSourceConfig, MakeKafkaSourceConfig and MakeSourceConnectorConfig
// return one.
type SourceConfig interface {
	source() *declaration.Source
}

// TCPSourceConfig is a source that listens for TCP connections.
type TCPSourceConfig struct {
	host, port string
	decoder    wa.Decoder
	onError    string
}

// MakeTCPSourceConfig describes a source that listens at host and port, e.g. "127.0.0.1" and "7010". With port "0" it
// listens at any free port. The decoder must be a wallarooapi.FramedDecoder or a wallarooapi.LineDecoder (T223). An
// unusable address (T211) and two sources with the same address (T203) are reported.
func MakeTCPSourceConfig(host string, port string, decoder wa.Decoder) *TCPSourceConfig {
	return &TCPSourceConfig{host: host, port: port, decoder: decoder}
}

// OnError sets the policy for a failing decoder: "dead_letter" or "fail". The default is the application's policy.
// OnError returns the config.
func (c *TCPSourceConfig) OnError(policy string) *TCPSourceConfig {
	c.onError = policy
	return c
}

func (c *TCPSourceConfig) source() *declaration.Source {
	return &declaration.Source{Edge: &topology.TCP{Host: c.host, Port: c.port}, Given: c.decoder, OnError: c.onError}
}

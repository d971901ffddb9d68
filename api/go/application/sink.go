package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// SinkConfig describes a sink for ToSink and ToSinks. MakeTCPSinkConfig and MakeKafkaSinkConfig return one.
type SinkConfig interface {
	sink() *declaration.Sink
}

// declaredSink is the common part of the configs of sinks: the declaration of the sink.
type declaredSink struct{ declared declaration.Sink }

func (c *declaredSink) sink() *declaration.Sink {
	sink := c.declared
	return &sink
}

// TCPSinkConfig is a sink that connects to a TCP server.
type TCPSinkConfig struct{ declaredSink }

// MakeTCPSinkConfig describes a sink that connects to host and port, e.g. "127.0.0.1" and "7002". The encoder returns
// all bytes of a message, including the framing. An unusable address (T211) and a nil encoder (T207) are reported.
func MakeTCPSinkConfig(host string, port string, encoder wa.Encoder) *TCPSinkConfig {
	edge := &topology.TCP{Host: host, Port: port}
	return &TCPSinkConfig{declaredSink{declaration.Sink{Edge: edge, Given: encoder, Encode: declaration.Values(encoder)}}}
}

// OnError sets the policy for messages on which the encoder fails: "dead_letter" or "fail" (see Application.OnError).
// The default is the application's policy. OnError returns the config.
func (c *TCPSinkConfig) OnError(policy string) *TCPSinkConfig {
	c.declared.OnError = policy
	return c
}

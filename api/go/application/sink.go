package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// SinkConfig is a destination of messages. MakeTCPSinkConfig, MakeKafkaSinkConfig and MakeSinkConnectorConfig return
// one.
type SinkConfig interface {
	sink() *declaration.Sink
}

// TCPSinkConfig is a sink that connects to a TCP server.
type TCPSinkConfig struct {
	host, port string
	encoder    wa.Encoder
	onError    string
}

// MakeTCPSinkConfig describes a sink that connects to host and port, e.g. "127.0.0.1" and "7002". The encoder returns
// all bytes, including framing. An unusable address (T211) and a nil encoder (T207) are reported.
func MakeTCPSinkConfig(host string, port string, encoder wa.Encoder) *TCPSinkConfig {
	return &TCPSinkConfig{host: host, port: port, encoder: encoder}
}

// OnError sets the policy for a failing encoder: "dead_letter" or "fail". The default is the application's policy.
// OnError returns the config.
func (c *TCPSinkConfig) OnError(policy string) *TCPSinkConfig {
	c.onError = policy
	return c
}

func (c *TCPSinkConfig) sink() *declaration.Sink {
	return &declaration.Sink{Edge: &topology.TCP{Host: c.host, Port: c.port}, Given: c.encoder, Encoder: c.encoder, OnError: c.onError}
}

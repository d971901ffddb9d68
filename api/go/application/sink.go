package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
)

// SinkConfig is a destination of messages: what MakeTCPSinkConfig returns.
type SinkConfig interface {
	sink() *declaration.Sink
}

// TCPSinkConfig is a sink that connects to a TCP server.
type TCPSinkConfig struct {
	host, port string
	encoder    wa.Encoder
}

// MakeTCPSinkConfig describes a sink that connects to host and port, e.g. "127.0.0.1" and "7002".
func MakeTCPSinkConfig(host string, port string, encoder wa.Encoder) *TCPSinkConfig {
	return &TCPSinkConfig{host, port, encoder}
}

func (c *TCPSinkConfig) sink() *declaration.Sink {
	return &declaration.Sink{Host: c.host, Port: c.port, Encoder: c.encoder}
}

package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
)

// SourceConfig is a source of messages: what MakeTCPSourceConfig returns.
type SourceConfig interface {
	source() *declaration.Source
}

// TCPSourceConfig is a source that listens for TCP connections.
type TCPSourceConfig struct {
	host, port string
	decoder    wa.Decoder
}

// MakeTCPSourceConfig describes a source that listens at host and port, e.g. "127.0.0.1" and "7010". The decoder
// must be a wallarooapi.FramedDecoder.
func MakeTCPSourceConfig(host string, port string, decoder wa.Decoder) *TCPSourceConfig {
	return &TCPSourceConfig{host, port, decoder}
}

func (c *TCPSourceConfig) source() *declaration.Source {
	return &declaration.Source{Host: c.host, Port: c.port, Given: c.decoder}
}

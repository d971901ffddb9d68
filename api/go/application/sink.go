package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// SinkConfig is a destination of messages: what MakeTCPSinkConfig or MakeKafkaSinkConfig returns.
type SinkConfig interface {
	sink() *declaration.Sink
}

// TCPSinkConfig is a sink that connects to a TCP server.
type TCPSinkConfig struct {
	host, port string
	encoder    wa.Encoder
	onError    string
	delivery   string
}

// MakeTCPSinkConfig describes a sink that connects to host and port, e.g. "127.0.0.1" and "7002". The encoder
// gives all bytes, framing included. An address that is none is found (T211), so is a nil encoder (T207).
func MakeTCPSinkConfig(host string, port string, encoder wa.Encoder) *TCPSinkConfig {
	return &TCPSinkConfig{host: host, port: port, encoder: encoder}
}

// OnError says what happens when the encoder fails on a message: "dead_letter" or "fail"; without it what the
// application says. It returns the config.
func (c *TCPSinkConfig) OnError(policy string) *TCPSinkConfig {
	c.onError = policy
	return c
}

// Delivery says who writes to the server. "outbox", the default: each message is sent once and in order, but for what was on the
// wire when something died; output waits on disk for a server that is away. "executor": Spark's tasks send what they have made, each
// over a connection of its own, before their micro-batch counts. Every message then arrives at least once, in order only within
// a task, and a server that is away holds the application up. It returns the config.
func (c *TCPSinkConfig) Delivery(by string) *TCPSinkConfig {
	c.delivery = by
	return c
}

func (c *TCPSinkConfig) sink() *declaration.Sink {
	edge := &topology.TCP{Host: c.host, Port: c.port, Delivery: c.delivery}
	return &declaration.Sink{Edge: edge, Given: c.encoder, Encoder: c.encoder, OnError: c.onError}
}

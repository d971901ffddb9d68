package application

import (
	"encoding/binary"
	"fmt"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// The credits of connector sources are the same as in Wallaroo's Python API.
const maxCredits, refillCredits = 100_000, 50_000

// SourceConnectorConfig is a source that listens for a connector, i.e. a program that sends messages to the
// application.
type SourceConnectorConfig struct {
	declaredSource
	host, port string
	decoder    wa.Decoder
}

// MakeSourceConnectorConfig describes a source that listens at host and port for the connector called name. The
// decoder gets the payload of a message, without its length and time. Wallaroo had no connectors for Go programs. To
// start a connector that uses Wallaroo's Python API, write a Python module that declares a connector with the same name
// and port. Wrong addresses are reported as for MakeTCPSourceConfig.
func MakeSourceConnectorConfig(name string, host string, port string, decoder wa.Decoder) *SourceConnectorConfig {
	declared := declaration.Source{Name: name, Edge: &topology.TCP{Host: host, Port: port}}
	if decoder != nil {
		declared.Given = &streamDecoder{decoder}
	}
	return &SourceConnectorConfig{declaredSource{declared}, host, port, decoder}
}

// Cookie enables the connector protocol with this cookie. Each message is acknowledged after it has been processed. A
// connector may send 100,000 messages before it gets new credits. Cookie returns the config.
func (c *SourceConnectorConfig) Cookie(word string) *SourceConnectorConfig {
	c.declared.Given = c.decoder
	c.declared.Edge = &topology.Connector{
		Host: c.host, Port: c.port, Cookie: word, MaxCredits: maxCredits, RefillCredits: refillCredits,
	}
	return c
}

// OnError sets the policy for a failing decoder, as TCPSourceConfig.OnError does. It returns the config.
func (c *SourceConnectorConfig) OnError(policy string) *SourceConnectorConfig {
	c.declared.OnError = policy
	return c
}

// SinkConnectorConfig is a sink that connects to a connector, i.e. a program that receives output of the application.
type SinkConnectorConfig struct {
	declaredSink
	host, port string
	encoder    wa.Encoder
}

// MakeSinkConnectorConfig describes a sink that connects to the connector called name at host and port. The encoder
// returns the payload of a message, and the sink adds length and time. Wrong addresses are reported as for
// MakeTCPSinkConfig.
func MakeSinkConnectorConfig(name string, host string, port string, encoder wa.Encoder) *SinkConnectorConfig {
	declared := declaration.Sink{Name: name, Edge: &topology.TCP{Host: host, Port: port}}
	c := &SinkConnectorConfig{declaredSink{declared}, host, port, encoder}
	if encoder != nil {
		c.encodeBy(&streamEncoder{encoder})
	}
	return c
}

// Cookie enables the connector protocol with this cookie. The connector receives messages in transactions, each
// message exactly once. Cookie returns the config.
func (c *SinkConnectorConfig) Cookie(word string) *SinkConnectorConfig {
	c.declared.Edge = &topology.ConnectorSink{Host: c.host, Port: c.port, Cookie: word}
	c.encodeBy(c.encoder)
	return c
}

// OnError sets the policy for a failing encoder, as TCPSinkConfig.OnError does. It returns the config.
func (c *SinkConnectorConfig) OnError(policy string) *SinkConnectorConfig {
	c.declared.OnError = policy
	return c
}

// streamDecoder decodes the frames of a stream. A frame is a length and a time, both little-endian, and the payload.
type streamDecoder struct{ wa.Decoder }

func (d *streamDecoder) GoSymbol() string { return fmt.Sprintf("%T", d.Decoder) }

func (d *streamDecoder) HeaderLength() uint64 { return 4 }

func (d *streamDecoder) PayloadLength(header []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(header))
}

func (d *streamDecoder) Decode(frame []byte) interface{} {
	if len(frame) < topology.StreamTimeBytes {
		panic(topology.StreamTooShort(len(frame)))
	}
	return d.Decoder.Decode(frame[topology.StreamTimeBytes:])
}

type streamEncoder struct{ wa.Encoder }

func (e *streamEncoder) GoSymbol() string { return fmt.Sprintf("%T", e.Encoder) }

func (e *streamEncoder) Encode(data interface{}) []byte {
	return topology.StreamFrame(e.Encoder.Encode(data))
}

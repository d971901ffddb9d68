package wallarootest

import (
	"encoding/binary"

	"wallarooapi/internal/declaration"
)

const numberBytes = 8

// captured keeps the messages that encoders got, so that Messages can return them. Each message has a number, which is
// appended to its encoded bytes. When the engine returns the bytes, take finds the message by this number.
type captured struct {
	values map[uint64]any
	last   uint64
}

// capturing returns a copy of the application. Its encoders keep their messages in c, and number them.
func (c *captured) capturing(declared *declaration.Application) *declaration.Application {
	copied := *declared
	copied.Pipelines = nil
	for _, pipeline := range declared.Pipelines {
		pipeline := *pipeline
		sinks := pipeline.Sinks
		pipeline.Sinks = nil
		for _, sink := range sinks {
			sink := *sink
			if sink.Encode != nil {
				sink.Encode = c.capturingRecords(sink.Encode)
			}
			pipeline.Sinks = append(pipeline.Sinks, &sink)
		}
		copied.Pipelines = append(copied.Pipelines, &pipeline)
	}
	return &copied
}

// number keeps a message and appends its number to the encoded bytes. It returns nil if encoded is nil.
func (c *captured) number(encoded []byte, message any) []byte {
	if encoded == nil {
		return nil
	}
	c.last++
	c.values[c.last] = message
	return binary.BigEndian.AppendUint64(encoded[:len(encoded):len(encoded)], c.last)
}

// take splits numbered bytes into the encoder's bytes and the number, and returns the message with this number.
func (c *captured) take(numbered []byte) (encoded []byte, message any) {
	size := len(numbered) - numberBytes
	number := binary.BigEndian.Uint64(numbered[size:])
	message = c.values[number]
	delete(c.values, number)
	return numbered[:size:size], message
}

func (c *captured) capturingRecords(encode declaration.RecordEncoder) declaration.RecordEncoder {
	return func(data any) (value, key []byte, partition int32) {
		value, key, partition = encode(data)
		return c.number(value, data), key, partition
	}
}

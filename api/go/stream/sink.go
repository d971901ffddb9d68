package stream

import (
	"bytes"
	"encoding/binary"
	"maps"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/kafka"
	"wallarooapi/internal/topology"
)

// Sink describes the destination of messages of one type and their encoder. TCPSink, KafkaSink and other functions of
// this package return one; To adds it to an application.
type Sink[T any] struct{ declared declaration.Sink }

// TCPSink sends messages to the TCP server at address, HOST:PORT (T211). encode returns the bytes of one message,
// including framing. If encode returns nil or the error ErrSkip, nothing is sent.
func TCPSink[T any](address string, encode func(message T) ([]byte, error)) Sink[T] {
	host, port, found := split("sink", address)
	declared := declaration.Sink{Edge: &topology.TCP{Host: host, Port: port}, Given: &encoder[T]{encode}, Found: found}
	if encode != nil {
		declared.Encode = declaration.Values(&encoder[T]{encode})
	}
	return Sink[T]{declared}
}

// LineSink sends lines to the server at address, HOST:PORT (T211). encode returns a line without its end. A line break
// in the line makes the message a dead letter (C501). If encode returns nil or the error ErrSkip, nothing is sent.
func LineSink[T any](address string, encode func(message T) ([]byte, error)) Sink[T] {
	sink := TCPSink(address, encode)
	if encode != nil {
		made := &lineEncoder[T]{encoder[T]{encode}}
		sink.declared.Given, sink.declared.Encode = made, declaration.Values(made)
	}
	return sink
}

// PlainConnectorSink sends messages to a connector that listens at address, HOST:PORT, and does not use the connector
// protocol. encode returns the payload of one message, without framing. If encode returns nil or the error ErrSkip,
// nothing is sent.
func PlainConnectorSink[T any](address string, encode func(message T) ([]byte, error)) Sink[T] {
	sink := TCPSink(address, encode)
	if encode != nil {
		made := &plainConnectorEncoder[T]{encoder[T]{encode}}
		sink.declared.Given, sink.declared.Encode = made, declaration.Values(made)
	}
	return sink
}

// ConnectorSink sends messages to a connector: a program that listens at address, HOST:PORT, and writes to another
// system. The connector uses the connector protocol, and accepts an application that sends the word cookie. It receives
// messages in transactions, each message exactly once. encode returns the payload of one message.
func ConnectorSink[T any](address, cookie string, encode func(message T) ([]byte, error)) Sink[T] {
	sink := TCPSink(address, encode)
	host, port, _ := split("sink", address)
	sink.declared.Edge = &topology.ConnectorSink{Host: host, Port: port, Cookie: cookie}
	return sink
}

// KafkaSink writes records to a topic of Kafka. encode returns a record's value, key and partition. If it returns a nil
// value or the error ErrSkip, nothing is written. A wrong description of the topic is reported (T207).
func KafkaSink[T any](topic Kafka, encode func(message T) (Record, error)) Sink[T] {
	return recordSink(declaration.Sink{Edge: sinkEdge(topic), Found: checkTopic("KafkaSink", topic)}, encode)
}

// KafkaSinkOf is KafkaSink for a topic that the application's arguments describe: --NAME_topic, --NAME_brokers and so
// on, as in programs for Wallaroo 0.5. Missing or wrong arguments are reported (T240).
func KafkaSinkOf[T any](name string, args []string, encode func(message T) (Record, error)) Sink[T] {
	edge, found := kafka.Sink(name, args)
	return recordSink(declaration.Sink{Edge: edge, Found: found}, encode)
}

// SparkSink writes rows in any format that Spark can write. Each message is one row with the columns value and key, from
// which format.Value selects. An empty format.Format or format.Value is reported (T207), and so are fields that only
// sources have, such as Schema.
func SparkSink[T any](format Spark, encode func(message T) (Record, error)) Sink[T] {
	edge := &topology.Spark{Format: format.Format, Options: maps.Clone(format.Options), Value: format.Value}
	return recordSink(declaration.Sink{Edge: edge, Found: append(checkFormat("SparkSink", format), checkSinkFormat("SparkSink", format)...)}, encode)
}

// checkSinkFormat returns findings about fields that a program has set in the format of a sink although they are only
// for sources.
func checkSinkFormat(method string, format Spark) (found []diagnostic.Diagnostic) {
	for _, field := range [][2]string{{"Schema", format.Schema}, {"Key", format.Key}, {"Timestamp", format.Timestamp}} {
		if name, value := field[0], field[1]; value != "" {
			found = append(found, diagnostic.Wrong(method, name, diagnostic.Shown(value), "none: it is of sources", "leave it out; Value is the select list of the rows"))
		}
	}
	return found
}

// OnError sets the policy for messages on which the encoder fails: "dead_letter" or "fail" (see Application.OnError).
// The default is the application's policy. OnError returns the sink.
func (s Sink[T]) OnError(policy string) Sink[T] {
	s.declared.OnError = policy
	return s
}

// Named sets the name of the sink, by which tests, log messages and the figures of a run refer to it. The default is
// the application's name. If several sinks are not named, a Kafka sink has the name of its topic. Of the other sinks,
// all but the first have a number after the application's name. Named returns the sink.
func (s Sink[T]) Named(name string) Sink[T] {
	s.declared.Name = name
	return s
}

func recordSink[T any](declared declaration.Sink, encode func(T) (Record, error)) Sink[T] {
	made := &recordEncoder[T]{encode}
	declared.Given, declared.HasKeys = made, true
	if encode != nil {
		declared.Encode = made.encode
	}
	return Sink[T]{declared}
}

type encoder[T any] struct{ function func(T) ([]byte, error) }

func (e *encoder[T]) GoSymbol() string { return symbolOf(e.function) }

func (e *encoder[T]) Encode(data any) []byte {
	bytes, err := e.function(data.(T))
	if err != nil {
		refuse(err)
		return nil
	}
	return bytes
}

// plainConnectorEncoder encodes for a PlainConnectorSink.
type plainConnectorEncoder[T any] struct{ encoder[T] }

// Encode puts the length and a time of 0 before a payload, both little-endian. For nil it returns nil.
func (e *plainConnectorEncoder[T]) Encode(data any) []byte {
	payload := e.encoder.Encode(data)
	if payload == nil {
		return nil
	}
	frame := make([]byte, 4+timeBytes, 4+timeBytes+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(timeBytes+len(payload)))
	return append(frame, payload...)
}

// lineEncoder encodes for a LineSink.
type lineEncoder[T any] struct{ encoder[T] }

func (e *lineEncoder[T]) Encode(data any) []byte {
	line := e.encoder.Encode(data)
	if line == nil {
		return nil
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		panic("there is a line break in the line: a reader would take it for two")
	}
	return append(line[:len(line):len(line)], '\n')
}

type recordEncoder[T any] struct{ function func(T) (Record, error) }

func (e *recordEncoder[T]) GoSymbol() string { return symbolOf(e.function) }

func (e *recordEncoder[T]) encode(data any) (value, key []byte, partition int32) {
	record, err := e.function(data.(T))
	if err != nil {
		refuse(err)
		return nil, nil, -1
	}
	if record.Partition == nil {
		return record.Value, record.Key, -1
	}
	return record.Value, record.Key, *record.Partition
}

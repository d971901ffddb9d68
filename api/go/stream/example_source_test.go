package stream_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
)

type order struct {
	Symbol string
	Amount int
}

// readOrder decodes an order from a record: from its key, its value and a header.
func readOrder(record stream.Record) (order, error) {
	for _, header := range record.Headers {
		if header.Name == "type" && string(header.Value) != "json" {
			return order{}, fmt.Errorf("written on %s as %s", record.Time, header.Value)
		}
	}
	read := order{Symbol: string(record.Key)}
	return read, json.Unmarshal(record.Value, &read.Amount)
}

func writeOrder(o order) (stream.Record, error) {
	value, err := json.Marshal(o.Amount)
	return stream.Record{Key: []byte(o.Symbol), Value: value}, err
}

// passed returns an application that sends all messages of a source to a sink.
func passed[T any](source stream.Source[T], sink stream.Sink[T]) *stream.Application {
	app := stream.New("Orders")
	stream.Filter(stream.From(app, "in", source), "all", func(context.Context, T) (bool, error) { return true, nil }).To(sink)
	return app
}

// With these framings, each message follows its length.
func ExampleFraming() {
	for _, framing := range []stream.Framing{
		stream.U8, stream.U16BE, stream.U16LE, stream.U32BE, stream.U32LE, stream.U64BE, stream.U64LE,
	} {
		source := stream.TCPSource("127.0.0.1:7010", framing, stream.Text.Decode)
		example.Show(passed(source, textSink).ToJson(), "sources", "kind", "port", "framing.kind")
	}
	// Output:
	// tcp 7010 u8
	// tcp 7010 u16be
	// tcp 7010 u16le
	// tcp 7010 u32be
	// tcp 7010 u32le
	// tcp 7010 u64be
	// tcp 7010 u64le
}

// Source and sink have orders as lines of JSON.
func ExampleLineSink() {
	source := stream.TCPSource("127.0.0.1:7010", stream.Newline, func(line []byte) (o order, err error) { return o, json.Unmarshal(line, &o) })
	sink := stream.LineSink("127.0.0.1:7002", func(o order) ([]byte, error) { return json.Marshal(o) })
	app := passed(source, sink)
	example.Show(app.ToJson(), "sources", "kind", "framing.kind")
	example.Show(app.ToJson(), "sinks", "kind", "port")
	// Output:
	// tcp newline
	// tcp 7002
}

// Windows use the event time of messages, here seconds since 1970 in the first 8 bytes.
func ExampleSource_EventTime() {
	source := stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Bytes.Decode).
		EventTime(func(payload []byte) time.Time { return time.Unix(int64(binary.BigEndian.Uint64(payload)), 0) })
	size := stream.Aggregation[[]byte, int, []byte]{
		Name:    "size",
		Initial: func() int { return 0 },
		Update:  func(payload []byte, size int) int { return size + len(payload) },
		Combine: func(earlier, later int) int { return earlier + later },
		Output:  func(_ string, size int) ([]byte, error) { return fmt.Appendln(nil, size), nil },
	}
	app := stream.New("Sizes")
	payloads := stream.Collect(stream.From(app, "payloads", source))
	stream.RangeWindow(payloads, stream.Range{Length: time.Minute}, size).To(stream.TCPSink("127.0.0.1:7002", stream.Bytes.Encode))
	example.Show(app.ToJson(), "steps", "name", "window.time")
	// Output:
	// collect -
	// size event
}

func ExampleGeneratorSource() {
	app := stream.New("Halves")
	half := func(_ context.Context, number float64) (float64, error) {
		if number < 0.001 {
			return 0, stream.ErrEnd
		}
		return number / 2, nil
	}
	stream.From(app, "halves", stream.GeneratorSource(1, half)).To(stream.TCPSink("127.0.0.1:7002", stream.Float64.Encode))
	example.Show(app.ToJson(), "sources", "name", "kind")
	// Output: halves generator
}

// One connector program sends orders to the application, and another receives them in transactions.
func ExampleConnectorSource() {
	source := stream.ConnectorSource("127.0.0.1:7100", stream.Connector{Cookie: "word", MaxCredits: 1000}, readOrder)
	sink := stream.ConnectorSink("127.0.0.1:7200", "word", stream.JSON[order]().Encode)
	app := passed(source, sink)
	example.Show(app.ToJson(), "sources", "kind", "port", "cookie", "max_credits", "refill_credits")
	example.Show(app.ToJson(), "sinks", "kind", "port", "cookie")
	// Output:
	// connector 7100 word 1000 500
	// connector 7200 word
}

func ExamplePlainConnectorSource() {
	source := stream.PlainConnectorSource("127.0.0.1:7100", stream.Text.Decode)
	sink := stream.PlainConnectorSink("127.0.0.1:7200", stream.Text.Encode)
	app := passed(source, sink)
	example.Show(app.ToJson(), "sources", "kind", "port", "framing.kind")
	example.Show(app.ToJson(), "sinks", "kind", "port")
	// Output:
	// tcp 7100 u32le
	// tcp 7200
}

func ExampleKafkaSource() {
	brokers := []string{"kafka1:9092", "kafka2:9092"}
	source := stream.KafkaSource(stream.Kafka{Topic: "orders", Brokers: brokers, Start: "-100", Partitions: []int{0, 1}}, readOrder)
	options := map[string]string{"kafka.acks": "all"}
	sink := stream.KafkaSink(stream.Kafka{Topic: "checked", Brokers: brokers, Options: options, ExactlyOnce: true}, writeOrder)
	app := passed(source, sink)
	example.Show(app.ToJson(), "sources", "kind", "topic", "brokers", "start", "partitions")
	example.Show(app.ToJson(), "sinks", "kind", "topic", "options", "exactly_once")
	// Output:
	// kafka orders [kafka1:9092 kafka2:9092] -100 [map[number:0] map[number:1]]
	// kafka checked map[kafka.acks:all] true
}

// Messages are whole Kafka records, here of a table. Both topics are created if they do not exist, with the same number
// of partitions.
func ExampleKafkaRecordSource() {
	brokers := []string{"kafka1:9092"}
	compact := &stream.TopicCreation{Partitions: 3, Options: map[string]string{"cleanup.policy": "compact"}}
	source := stream.KafkaRecordSource(stream.Kafka{Topic: "users", Brokers: brokers, Table: true, Create: compact})
	like := stream.Kafka{Topic: "copy", Brokers: brokers, ExactlyOnce: true, Create: &stream.TopicCreation{Like: "users"}}
	sink := stream.KafkaRecordSink(like, func(record stream.KafkaRecord) (stream.KafkaRecord, error) {
		if record.Value == nil { // a tombstone stays one
			return stream.KafkaRecord{Key: record.Key}, nil
		}
		header := stream.KafkaHeader{Key: "from", Value: []byte(record.Topic)}
		return stream.KafkaRecord{Key: record.Key, Value: record.Value, Headers: []stream.KafkaHeader{header}}, nil
	})
	app := passed(source, sink)
	example.Show(app.ToJson(), "sources", "topic", "content", "table", "create")
	example.Show(app.ToJson(), "sinks", "topic", "content", "exactly_once", "create")
	// Output:
	// users record true map[options:map[cleanup.policy:compact] partitions:3]
	// copy record true map[like:users]
}

// The application's arguments name topics and brokers, as in Wallaroo 0.5.
func ExampleKafkaSourceOf() {
	args := []string{"--in_topic", "orders", "--in_brokers", "kafka1:9092", "--out_topic", "checked"}
	source := stream.KafkaSourceOf("in", args, readOrder)
	example.Show(passed(source, stream.KafkaSinkOf("out", append(args, "--out_brokers", "kafka1:9092"), writeOrder)).ToJson(), "sinks", "topic", "brokers")
	example.Show(passed(source, stream.KafkaSinkOf("out", args, writeOrder)).ToJson(), "sinks", "topic")
	// Output:
	// checked [kafka1:9092]
	// T240 sink "out": option --out_brokers is missing; expected HOST:PORT,...; fix: give it, e.g. --out_brokers 127.0.0.1:9092
}

// Source and sink have formats of Spark. Value makes a decoder that needs only the value of a record.
func ExampleSparkSource() {
	read := stream.Spark{Format: "json", Schema: "symbol STRING, amount INT", Value: "to_json(struct(*))", Key: "symbol",
		Options: map[string]string{"path": "orders"}}
	source := stream.SparkSource(read, stream.Value(stream.JSON[order]().Decode))
	sink := stream.SparkSink(stream.Spark{Format: "csv", Value: "value, key", Options: map[string]string{"path": "checked"}}, writeOrder)
	app := passed(source, sink)
	example.Show(app.ToJson(), "sources", "format", "value", "key")
	example.Show(app.ToJson(), "sinks", "format", "value", "options")
	// Output:
	// json to_json(struct(*)) symbol
	// csv value, key map[path:checked]
}

package stream

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/kafka"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/usercode"
)

// Source describes the origin of messages of one type and their decoder. TCPSource, KafkaSource and other functions of
// this package return one; From adds it to an application.
type Source[T any] struct{ declared declaration.Source }

// Framing is the way in which a TCP stream is cut into messages. Either a message follows its length in bytes (an
// unsigned integer of 8, 16, 32 or 64 bits, big-endian or little-endian), or each message is a line.
type Framing string

// These are the framings of a TCP stream: a length of 8 to 64 bits before each message, big-endian (BE) or
// little-endian (LE), or lines.
const (
	U8    Framing = "u8"
	U16BE Framing = "u16be"
	U16LE Framing = "u16le"
	U32BE Framing = "u32be"
	U32LE Framing = "u32le"
	U64BE Framing = "u64be"
	U64LE Framing = "u64le"
	// Newline is the framing of lines. decode gets a line without its line end (LF or CR LF). If the last line has no
	// line end, the end of the connection ends it.
	Newline Framing = "newline"
)

var headerBytes = map[Framing]uint64{U8: 1, U16BE: 2, U16LE: 2, U32BE: 4, U32LE: 4, U64BE: 8, U64LE: 8}

const maxCredits = 100_000

// ErrEnd is the error that the function of a GeneratorSource returns if there are no more messages. It is not a
// failure.
var ErrEnd = errors.New("no more messages")

// Record is a message in serialized form, with its key, time and headers. Decoders get records, and encoders return
// them. A record comes from Kafka, from a connector or from a row of Spark.
type Record struct {
	// Value is the content of the message. It is nil for a tombstone of Kafka.
	Value []byte
	// Key is empty if the message has no key.
	Key []byte
	// Time is the record's timestamp. Sinks ignore it.
	Time time.Time
	// Headers are the headers of a Kafka record. Sinks do not write them.
	Headers []Header
	// Partition is the partition to which a Kafka sink writes the record. With nil, Kafka chooses it by the key.
	Partition *int32
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Kafka describes the topic of a source or sink. Some fields are only for sources, others only for sinks. A field that
// has no effect is reported (T207).
type Kafka struct {
	Topic string
	// Brokers are addresses of the form HOST:PORT.
	Brokers []string
	// Start is the place where a source begins: "start", "end", an offset, or "-n" for n records before the end. The
	// default is "start".
	Start string
	// Partitions are the partitions that a source reads. An empty list means all.
	Partitions []int
	// Options are settings of Kafka's client, with the prefix "kafka.". A source also accepts options of Spark's
	// source, such as maxOffsetsPerTrigger.
	Options map[string]string
	// ExactlyOnce makes a sink write in transactions. Readers of committed records then see each record exactly once,
	// even after any process has failed. Without it, no record is lost, but records may be repeated after a kill.
	ExactlyOnce bool
	// Table makes a KafkaRecordSource treat the topic as a table with the latest record of each key. In each
	// micro-batch, records of the table come before messages of other sources. The first micro-batch reads the whole
	// table.
	Table bool
	// Create describes how to create the topic before a run if it does not exist. With nil, the topic must exist.
	Create *TopicCreation
}

// TopicCreation describes how to create a topic: with as many partitions as another topic has, or with a given number.
type TopicCreation struct {
	// Like is the name of another topic. The new topic gets as many partitions as that topic has. If Like is empty,
	// Partitions is their number.
	Like       string
	Partitions int
	// Replicas is the number of copies of each partition. 0 means 1.
	Replicas int
	// Options are settings of the topic, such as cleanup.policy.
	Options map[string]string
}

// Spark describes data that Spark reads for a source or writes for a sink: a format, e.g. "parquet", and its options.
type Spark struct {
	Format  string
	Options map[string]string
	// Schema is the schema of a source's rows as Spark DDL. Only some formats need it.
	Schema string
	// Value is an SQL expression over the rows. In a source it returns the bytes or text of a message. In a sink it is
	// a select list over the columns value and key, or over the columns of whole rows (SparkRowSink).
	Value string
	// Key and Timestamp are SQL expressions for the key and the time of a source's messages. If empty, messages have
	// no key or time.
	Key, Timestamp string
}

// Connector has the settings of a ConnectorSource. A connector needs one credit for each message that it sends. The
// application gives it new credits as long as there is room for messages.
type Connector struct {
	// Cookie is the word that a connector must send. If it is empty, no cookie is required.
	Cookie string
	// MaxCredits is the largest number of credits of a connector, 1 to 1,000,000. Each message takes one credit. 0
	// means 100,000.
	MaxCredits int
	// RefillCredits is the number of credits below which a connector gets new ones. 0 means half of MaxCredits, but at
	// least 1.
	RefillCredits int
}

// TCPSource listens at address, HOST:PORT, for TCP connections that send messages. Port 0 means any free port. decode
// gets the payload of a message, without the framing. It may keep the payload but must not change it. If decode returns
// the error ErrSkip, the message is discarded. An unusable address (T211), an unknown framing and a nil function (T207)
// are reported. A run also reports two sources with one address (T203).
func TCPSource[T any](address string, framing Framing, decode func(payload []byte) (T, error)) Source[T] {
	host, port, found := split("source", address)
	made := decoder[T]{func(r Record) (T, error) { return decode(r.Value) }, symbolOf(decode), resultsOf[T]()}
	if decode != nil && framing == Newline {
		return Source[T]{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: &lines[T]{made}, Found: found}}
	}
	if decode == nil || headerBytes[framing] == 0 {
		found = append(found, wrongParameter("TCPSource", "framing and decode", string(framing), "a framing, e.g. U32BE, and a function")...)
	}
	return Source[T]{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: &framed[T]{made, framing}, Found: found}}
}

// timeBytes is the size of a time. It precedes the payload in each frame that a connector without the connector
// protocol sends or gets.
const timeBytes = 8

// PlainConnectorSource listens at address, HOST:PORT, for a connector that does not use the connector protocol and
// therefore gets no acknowledgements. The connector sends frames of a length (4 bytes), a time (8 bytes, which are
// ignored) and the payload.
func PlainConnectorSource[T any](address string, decode func(payload []byte) (T, error)) Source[T] {
	if decode == nil {
		return TCPSource[T](address, U32LE, nil)
	}
	host, port, found := split("source", address)
	payload := func(r Record) (T, error) {
		if len(r.Value) < timeBytes {
			var none T
			return none, fmt.Errorf("a frame has %d bytes; at least %d are a time", len(r.Value), timeBytes)
		}
		return decode(r.Value[timeBytes:])
	}
	made := &framed[T]{decoder[T]{payload, symbolOf(decode), resultsOf[T]()}, U32LE}
	return Source[T]{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: made, Found: found}}
}

// KafkaSource reads a topic of Kafka. Its messages carry the keys of the records. To decode only the values, pass
// Value(decode). A wrong description of the topic is reported (T207).
func KafkaSource[T any](topic Kafka, decode func(record Record) (T, error)) Source[T] {
	return recordSource("KafkaSource", sourceEdge(topic), decode, checkTopic("KafkaSource", topic))
}

// KafkaSourceOf is KafkaSource for a topic that the application's arguments describe: --NAME_topic, --NAME_brokers and
// so on, as in programs for Wallaroo 0.5. Missing or wrong arguments are reported (T240).
//
// Source: Wallaroo 0.5, MakeKafkaSourceConfig.
func KafkaSourceOf[T any](name string, args []string, decode func(record Record) (T, error)) Source[T] {
	edge, found := kafka.Source(name, args)
	return recordSource("KafkaSourceOf", edge, decode, found)
}

// ConnectorSource listens at address, HOST:PORT, for connectors: programs that send messages of another system with the
// connector protocol. Each message is acknowledged after it has been processed. Messages carry the keys and times that
// the connector sends. Wrong numbers of credits are reported (T207).
func ConnectorSource[T any](address string, connector Connector, decode func(record Record) (T, error)) Source[T] {
	host, port, found := split("source", address)
	most, refill := cmp.Or(connector.MaxCredits, maxCredits), connector.RefillCredits
	if refill == 0 {
		refill = max(1, most/2)
	}
	if refill < 1 || refill > most || most > 1_000_000 {
		found = append(found, wrongParameter("ConnectorSource", "connector", fmt.Sprintf("%d of %d credits", refill, most),
			"RefillCredits from 1 to MaxCredits, at most 1000000")...)
	}
	edge := &topology.Connector{Host: host, Port: port, Cookie: connector.Cookie, MaxCredits: most, RefillCredits: refill}
	return recordSource("ConnectorSource", edge, decode, found)
}

// SparkSource reads rows of any format that Spark can read. Each row is one message. An empty Format or Value is
// reported (T207).
func SparkSource[T any](format Spark, decode func(record Record) (T, error)) Source[T] {
	edge := &topology.Spark{Format: format.Format, Options: maps.Clone(format.Options), Schema: format.Schema, Value: format.Value,
		Key: format.Key, Timestamp: format.Timestamp}
	return recordSource("SparkSource", edge, decode, checkFormat("SparkSource", format))
}

// GeneratorSource is a source without input: the program makes its messages. The first message is the argument first.
// Each later message is the result of next for the previous message, until next returns the error ErrEnd. The result
// must depend on the previous message alone, because a restart continues from an earlier message.
//
// Source: Wallaroo 0.5.4, GenSource of Python.
func GeneratorSource[T any](first T, next func(ctx context.Context, previous T) (T, error)) Source[T] {
	learn[T]()
	made := &generator[T]{first, next}
	if next == nil {
		return Source[T]{declaration.Source{Edge: &topology.Generator{}, Found: wrongParameter("GeneratorSource", "next", "nil", "a function")}}
	}
	return Source[T]{declaration.Source{Edge: &topology.Generator{}, Given: made}}
}

// Value turns a decoder of values into a decoder of records, which decodes only the value of a record.
func Value[T any](decode func(value []byte) (T, error)) func(Record) (T, error) {
	return func(record Record) (T, error) { return decode(record.Value) }
}

// OnError sets the policy for messages on which the decoder fails: "dead_letter" or "fail" (see Application.OnError).
// The default is the application's policy. OnError returns the source.
func (s Source[T]) OnError(policy string) Source[T] {
	s.declared.OnError = policy
	return s
}

// EventTime sets a function that returns the event time of each message from its payload. Windows, timers and TTLs use
// event times, in place of arrival times and of the timestamps of records, if all their sources give them. The function
// is called after decode, and only if a step with a window, timer or TTL follows. If it panics, the message becomes a
// dead letter (C505), as with a failing decode. The time is truncated to milliseconds. EventTime returns the source.
func (s Source[T]) EventTime(when func(payload []byte) time.Time) Source[T] {
	if when == nil {
		found := diagnostic.Wrong("EventTime", "when", "nil", "a function that returns the time of a payload")
		s.declared.Found = append(slices.Clip(s.declared.Found), found)
		return s
	}
	s.declared.EventTime = func(payload []byte) int64 { return when(payload).UnixMilli() }
	return s
}

// Timestamp sets the event time of each row of a Spark source as SQL over the columns, e.g. the name of a column. It
// replaces the field Timestamp of type Spark. Windows, timers and TTLs use event times in place of arrival times if all
// their sources give them. For a source that is not Spark's, Timestamp is reported (T207). Timestamp returns the
// source.
func (s Source[T]) Timestamp(expression string) Source[T] {
	edge, is := s.declared.Edge.(*topology.Spark)
	if !is || expression == "" {
		s.declared.Found = append(s.declared.Found, wrongParameter("Timestamp", "expression", expression,
			"SQL over the columns, of a source of Spark")...)
		return s
	}
	timed := *edge
	timed.Timestamp = expression
	s.declared.Edge = &timed
	return s
}

// recordSource returns a source with a decoder of records. The parameter found has the findings about the source's
// description.
func recordSource[T any](method string, edge topology.Edge, decode func(Record) (T, error), found []diagnostic.Diagnostic) Source[T] {
	if decode == nil {
		found = append(found, wrongParameter(method, "decode", "nil", "a function")...)
	}
	return Source[T]{declaration.Source{Edge: edge, Given: &decoder[T]{decode, symbolOf(decode), resultsOf[T]()}, Found: found}}
}

// wrongParameter returns a finding (T207) about a wrong parameter of a source or sink.
func wrongParameter(method, parameter, actual, expected string) []diagnostic.Diagnostic {
	return []diagnostic.Diagnostic{diagnostic.Wrong(method, parameter, diagnostic.Shown(actual), expected)}
}

// checkFormat returns a finding if a Spark format lacks the field Format or Value.
func checkFormat(method string, format Spark) []diagnostic.Diagnostic {
	switch {
	case format.Format == "":
		return wrongParameter(method, "Format", "", "the name of a format of Spark's, e.g. \"parquet\"")
	case format.Value == "":
		return wrongParameter(method, "Value", "", "the SQL of a column, e.g. \"value\"")
	}
	return nil
}

// split cuts an address into host and port. It returns a finding for an address that is not HOST:PORT. what is "source"
// or "sink", for the text of the finding.
func split(what, address string) (host, port string, found []diagnostic.Diagnostic) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		found = append(found, diagnostic.Of("T211", "what", what, "value", diagnostic.Shown(address), "reason", "it is not HOST:PORT"))
	}
	return host, port, found
}

// decoder calls the program's decoding function, which gets a record. Decode is for sources whose messages have only a
// payload, DecodeRecord for the others.
type decoder[T any] struct {
	function func(Record) (T, error)
	symbol   string
	results  results[T]
}

// GoSymbol returns the name of the program's function, which the topology contains.
func (d *decoder[T]) GoSymbol() string { return d.symbol }

func (d *decoder[T]) Decode(payload []byte) any {
	return d.results.settle(d.function(Record{Value: payload})).One
}

func (d *decoder[T]) DecodeRecord(value []byte, record declaration.Record) any {
	return d.results.settle(d.function(Record{
		Value: value, Key: record.Key, Time: time.UnixMilli(record.TimestampMs), Headers: headers(record.Headers),
	})).One
}

// headers decodes the headers of a message in a frame. A header is a length, the name, a length and the value.
func headers(encoded []byte) (all []Header) {
	for len(encoded) >= 6 {
		size := int(binary.LittleEndian.Uint16(encoded))
		name := string(encoded[2 : 2+size])
		encoded = encoded[2+size:]
		size = int(binary.LittleEndian.Uint32(encoded))
		all = append(all, Header{name, encoded[4 : 4+size : 4+size]})
		encoded = encoded[4+size:]
	}
	return all
}

// framed is the decoder of a TCP source that sends a header with the length before each message.
type framed[T any] struct {
	decoder[T]
	framing Framing
}

func (f *framed[T]) HeaderLength() uint64 { return headerBytes[f.framing] }

func (f *framed[T]) PayloadLength(header []byte) uint64 {
	return topology.Framing{Kind: string(f.framing)}.Length(header)
}

// lines is the decoder of a TCP source whose messages are lines.
type lines[T any] struct{ decoder[T] }

func (*lines[T]) DecodesLines() {}

// generator calls the function of a GeneratorSource.
type generator[T any] struct {
	first T
	next  func(context.Context, T) (T, error)
}

func (g *generator[T]) GoSymbol() string { return symbolOf(g.next) }

func (g *generator[T]) InitialValue() any { return g.first }

func (g *generator[T]) Apply(previous any) any {
	message, err := g.next(usercode.Context(), previous.(T))
	if errors.Is(err, ErrEnd) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return message
}

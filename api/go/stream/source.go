package stream

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/kafka"
	"wallarooapi/internal/topology"
)

// Source is where messages of a type come from.
type Source[T any] struct{ declared declaration.Source }

// Framing says how a TCP stream is cut into messages: each follows its length in bytes, an unsigned integer of 8, 16, 32
// or 64 bits, big-endian or little-endian; or each is a line.
type Framing string

// The framings.
const (
	U8    Framing = "u8"
	U16BE Framing = "u16be"
	U16LE Framing = "u16le"
	U32BE Framing = "u32be"
	U32LE Framing = "u32le"
	U64BE Framing = "u64be"
	U64LE Framing = "u64le"
	// Newline is that of lines: decode gets a line without its end, LF or CR LF; a last line without one ends with the connection.
	Newline Framing = "newline"
)

var headerBytes = map[Framing]uint64{U8: 1, U16BE: 2, U16LE: 2, U32BE: 4, U32LE: 4, U64BE: 8, U64LE: 8}

const maxCredits = 100_000

// ErrEnd is the error of a generator that makes no more messages; it is no failure.
var ErrEnd = errors.New("no more messages")

// Record is a message of Kafka, of a connector or of a row of Spark, with the properties besides its value.
type Record struct {
	// Value is what the message consists of; nil where Kafka has none (a tombstone).
	Value []byte
	// Key is empty where the message has none.
	Key []byte
	// Time is the record's own; of a sink's records nothing depends on it.
	Time time.Time
	// Headers are Kafka's; a sink writes none.
	Headers []Header
	// Partition, in a record for a Kafka sink, names the partition; nil lets Kafka choose by the key.
	Partition *int32
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Kafka describes a topic. A field of sources in a sink is found (T207), so is one of sinks in a source.
type Kafka struct {
	Topic string
	// Brokers are addresses, HOST:PORT.
	Brokers []string
	// Start is of sources, where they begin: "start", "end", an offset, or "-n" for n before the end. Empty: "start".
	Start string
	// Partitions are of sources, those that are read; none: all.
	Partitions []int
	// Options are settings of Kafka's client, with "kafka." in front of their names; of sources also those of Spark's source, such
	// as maxOffsetsPerTrigger.
	Options map[string]string
	// ExactlyOnce is of sinks: readers of committed records see each record exactly once, whatever dies. Without it none is lost,
	// and some may come again after a kill.
	ExactlyOnce bool
	// Table is of sources of whole records: the topic is a table, the latest record of each key. Its records precede the other
	// messages of a micro-batch, and the first micro-batch reads all of it.
	Table bool
	// Create says how the topic is created before a run if it does not exist; nil: it must exist.
	Create *TopicCreation
}

// TopicCreation says how a topic is created: like another one, or with a number of partitions.
type TopicCreation struct {
	// Like is the name of a topic; the new one gets as many partitions. Empty: Partitions counts.
	Like       string
	Partitions int
	// Replicas is how many copies there are of each partition; 0: one.
	Replicas int
	// Options are settings of the topic, such as cleanup.policy.
	Options map[string]string
}

// Spark describes a format that Spark reads or writes.
type Spark struct {
	Format  string
	Options map[string]string
	// Schema is that of a source's rows, where the format needs one, as Spark's DDL.
	Schema string
	// Value is an SQL expression over the rows: of a source, what gives a message's bytes or text; of a sink, a select list over
	// the columns value and key, or over those of whole rows (SparkRowSink).
	Value string
	// Key and Timestamp are SQL expressions that give a source's messages a key and a time; empty: they have none.
	Key, Timestamp string
}

// Connector describes a listener for programs that speak the connector protocol.
type Connector struct {
	// Cookie is a word that a connector must say; empty: none.
	Cookie string
	// MaxCredits is how many messages a connector may send before it gets new credits, 1 to 1,000,000; 0: 100,000.
	MaxCredits int
	// RefillCredits: new credits are given when fewer than so many are left; 0: half of MaxCredits, at least 1.
	RefillCredits int
}

// TCPSource listens at an address, HOST:PORT; port 0 is any free one. decode gets the payload, may keep but not change it, and
// with the error ErrSkip discards it. An address that is none is found (T211), so are two sources at one (T203), another framing
// and a nil function (T207).
func TCPSource[T any](address string, framing Framing, decode func(payload []byte) (T, error)) Source[T] {
	host, port, found := split("source", address)
	made := decoder[T]{func(r Record) (T, error) { return decode(r.Value) }, symbolOf(decode), resultsOf[T]()}
	if decode != nil && framing == Newline {
		return Source[T]{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: &lines[T]{made}, Found: found}}
	}
	if decode == nil || headerBytes[framing] == 0 {
		found = append(found, wrongSource("TCPSource", "framing and decode", string(framing), "a framing, e.g. U32BE, and a function")...)
	}
	return Source[T]{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: &framed[T]{made, framing}, Found: found}}
}

// PlainConnectorSource listens at an address, HOST:PORT, for a connector that does not speak the connector protocol: it is not informed
// what was processed. Its frames are a length of 4 bytes and a time of 8, which is not looked at, before the payload.
func PlainConnectorSource[T any](address string, decode func(payload []byte) (T, error)) Source[T] {
	if decode == nil {
		return TCPSource[T](address, U32LE, nil)
	}
	host, port, found := split("source", address)
	payload := func(r Record) (T, error) {
		if len(r.Value) < topology.StreamTimeBytes {
			var none T
			return none, topology.StreamTooShort(len(r.Value))
		}
		return decode(r.Value[topology.StreamTimeBytes:])
	}
	made := &framed[T]{decoder[T]{payload, symbolOf(decode), resultsOf[T]()}, U32LE}
	return Source[T]{declaration.Source{Edge: &topology.TCP{Host: host, Port: port}, Given: made, Found: found}}
}

// KafkaSource reads a topic. Its messages carry the keys of the records. Value makes a decoder of one that needs the value alone. A
// topic that cannot be read as it is described is found (T207).
func KafkaSource[T any](topic Kafka, decode func(record Record) (T, error)) Source[T] {
	return recordSource("KafkaSource", sourceEdge(topic), decode, checkTopic("KafkaSource", topic))
}

// KafkaSourceOf is KafkaSource for a topic that the application's arguments describe: --NAME_topic, --NAME_brokers and so on, as
// Wallaroo's programs have it. What is missing or wrong is found (T240).
//
// Source: Wallaroo 0.5, MakeKafkaSourceConfig.
func KafkaSourceOf[T any](name string, args []string, decode func(record Record) (T, error)) Source[T] {
	edge, found := kafka.Source(name, args)
	return recordSource("KafkaSourceOf", edge, decode, found)
}

// ConnectorSource listens at an address, HOST:PORT, for programs that speak the connector protocol: each message is acknowledged
// once it is processed. Messages carry the keys and times that a connector gives them. Wrong numbers of credits are
// found (T207).
func ConnectorSource[T any](address string, connector Connector, decode func(record Record) (T, error)) Source[T] {
	host, port, found := split("source", address)
	most, refill := cmp.Or(connector.MaxCredits, maxCredits), connector.RefillCredits
	if refill == 0 {
		refill = max(1, most/2)
	}
	if refill < 1 || refill > most || most > 1_000_000 {
		found = append(found, wrongSource("ConnectorSource", "connector", fmt.Sprintf("%d of %d credits", refill, most),
			"RefillCredits from 1 to MaxCredits, at most 1000000")...)
	}
	edge := &topology.Connector{Host: host, Port: port, Cookie: connector.Cookie, MaxCredits: most, RefillCredits: refill}
	return recordSource("ConnectorSource", edge, decode, found)
}

// SparkSource reads by a source of Spark: one message per row. A format without a name or a value is found (T207).
func SparkSource[T any](format Spark, decode func(record Record) (T, error)) Source[T] {
	edge := &topology.Spark{Format: format.Format, Options: format.Options, Schema: format.Schema, Value: format.Value,
		Key: format.Key, Timestamp: format.Timestamp}
	return recordSource("SparkSource", edge, decode, checkFormat("SparkSource", format))
}

// GeneratorSource makes messages: the first, and each from the one before, until next returns the error ErrEnd. It must depend on the
// message before alone: after a restart it goes on from a message that was made.
//
// Source: Wallaroo 0.5.4, GenSource of Python.
func GeneratorSource[T any](first T, next func(ctx context.Context, previous T) (T, error)) Source[T] {
	learn[T]()
	made := &generator[T]{first, next}
	if next == nil {
		return Source[T]{declaration.Source{Edge: &topology.Generator{}, Found: wrongSource("GeneratorSource", "next", "nil", "a function")}}
	}
	return Source[T]{declaration.Source{Edge: &topology.Generator{}, Given: made}}
}

// Value makes a decoder for records of one for values.
func Value[T any](decode func(value []byte) (T, error)) func(Record) (T, error) {
	return func(record Record) (T, error) { return decode(record.Value) }
}

// OnError sets the policy for a failing decoder: "dead_letter" or "fail"; without it the application's
// policy counts. It returns the source.
func (s Source[T]) OnError(policy string) Source[T] {
	s.declared.OnError = policy
	return s
}

// EventTime says when each message of a TCP source happened; windows after it go by these times, not by those of arrival. The function is called
// after decode, for messages that windows follow; one for which it panics is a dead letter, C505, as one for which decode fails.
// Parts of a millisecond are cut off. It returns the source.
func (s Source[T]) EventTime(when func(payload []byte) time.Time) Source[T] {
	s.declared.EventTime = func(payload []byte) int64 { return when(payload).UnixMilli() }
	return s
}

// Timestamp says when each row of a source of Spark happened, as Spark.Timestamp does: SQL over the columns, such as the name of one.
// Windows after it go by these times, not by those of arrival. For other sources it is found (T207). It returns the source.
func (s Source[T]) Timestamp(expression string) Source[T] {
	edge, is := s.declared.Edge.(*topology.Spark)
	if !is || expression == "" {
		s.declared.Found = append(s.declared.Found, wrongSource("Timestamp", "expression", expression,
			"SQL over the columns, of a source of Spark")...)
		return s
	}
	timed := *edge
	timed.Timestamp = expression
	s.declared.Edge = &timed
	return s
}

func recordSource[T any](method string, edge topology.Edge, decode func(Record) (T, error), found []diagnostic.Diagnostic) Source[T] {
	if decode == nil {
		found = append(found, wrongSource(method, "decode", "nil", "a function")...)
	}
	return Source[T]{declaration.Source{Edge: edge, Given: &decoder[T]{decode, symbolOf(decode), resultsOf[T]()}, Found: found}}
}

func wrongSource(method, parameter, actual, expected string) []diagnostic.Diagnostic {
	return []diagnostic.Diagnostic{diagnostic.Of("T207", "method", method, "parameter", parameter, "actual", diagnostic.Shown(actual),
		"expected", expected, "fix", "pass "+expected)}
}

func checkFormat(method string, format Spark) []diagnostic.Diagnostic {
	switch {
	case format.Format == "":
		return wrongSource(method, "Format", "", "the name of a format of Spark's, e.g. \"parquet\"")
	case format.Value == "":
		return wrongSource(method, "Value", "", "the SQL of a column, e.g. \"value\"")
	}
	return nil
}

// split cuts an address; a bad one is a finding.
func split(what, address string) (host, port string, found []diagnostic.Diagnostic) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		found = append(found, diagnostic.Of("T211", "what", what, "value", diagnostic.Shown(address), "reason", "it is not HOST:PORT"))
	}
	return host, port, found
}

// decoder makes messages of records.
type decoder[T any] struct {
	function func(Record) (T, error)
	symbol   string
	results  results[T]
}

func (d *decoder[T]) GoSymbol() string { return d.symbol }

func (d *decoder[T]) Decode(payload []byte) any {
	return d.results.settle(d.function(Record{Value: payload}))
}

func (d *decoder[T]) DecodeRecord(value []byte, record declaration.Record) any {
	return d.results.settle(d.function(Record{
		Value: value, Key: record.Key, Time: time.UnixMilli(record.TimestampMs), Headers: headers(record.Headers),
	}))
}

// headers reads the headers of a message as they stand in a frame: repeated length, name, length, value.
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

// framed is a decoder of a TCP source.
type framed[T any] struct {
	decoder[T]
	framing Framing
}

func (f *framed[T]) HeaderLength() uint64 { return headerBytes[f.framing] }

func (f *framed[T]) PayloadLength(header []byte) uint64 {
	return topology.Framing{Kind: string(f.framing)}.Length(header)
}

// lines is a decoder of a TCP source whose messages are lines.
type lines[T any] struct{ decoder[T] }

func (*lines[T]) DecodesLines() {}

type generator[T any] struct {
	first T
	next  func(context.Context, T) (T, error)
}

func (g *generator[T]) GoSymbol() string { return symbolOf(g.next) }

func (g *generator[T]) InitialValue() any { return g.first }

func (g *generator[T]) Apply(previous any) any {
	message, err := g.next(running(), previous.(T))
	if errors.Is(err, ErrEnd) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return message
}

package declaration

import (
	"reflect"
	"time"

	wa "wallarooapi"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/topology"
)

// Source is a declared source.
type Source struct {
	Path      string
	Name      string
	Place     Place
	OnError   string
	Codec     string       // codec of its messages for another worker; empty for this worker's own format
	Output    reflect.Type // type of its messages; nil if the program does not state it
	Edge      topology.Edge
	Given     any              // decoder or generator, as the program passed it
	Decoder   wa.Decoder       // nil for a generator
	Framed    wa.FramedDecoder // decoder of a TCP source; nil if another object was passed
	Generator Generator
	EventTime func(payload []byte) int64 // nil if messages have their arrival time; a panic counts as a failure of the decoder
	Found     []diagnostic.Diagnostic    // findings in the description of the source
}

// Framing returns the framing of a TCP source, and the zero value for other sources.
func (s *Source) Framing() topology.Framing {
	if edge, ok := s.Edge.(*topology.TCP); ok {
		return edge.Framing
	}
	return topology.Framing{}
}

// GivesKeys reports whether the messages of the source have keys, as Kafka records do.
func (s *Source) GivesKeys() bool {
	switch edge := s.Edge.(type) {
	case *topology.Kafka, *topology.Connector:
		return true
	case *topology.Spark:
		return edge.Key != ""
	}
	return false
}

// GivesTimes reports whether the messages of the source have event times in place of arrival times.
func (s *Source) GivesTimes() bool {
	switch edge := s.Edge.(type) {
	case *topology.Kafka:
		return true
	case *topology.Spark:
		return edge.Timestamp != ""
	}
	return s.EventTime != nil
}

// Generator makes the messages of a source. It makes each message from the previous one, until the result is nil.
type Generator interface {
	InitialValue() any
	Apply(previous any) any
}

// RecordDecoder is a decoder that gets the whole record: its value, and the other parts as a Record.
type RecordDecoder interface {
	DecodeRecord(value []byte, record Record) any
}

// RowDecoder is a decoder whose messages are Spark rows. Tests of programs make the bytes of rows with it.
type RowDecoder interface {
	// EncodeRow returns the bytes that the decoder would decode to the message.
	EncodeRow(message any) ([]byte, error)
}

// Record is a message from Kafka, Spark or a connector, without its value. The bytes must not be changed.
type Record struct {
	Key         []byte
	TimestampMs int64
	Headers     []byte // encoded as in a frame
}

// Sink is a declared sink.
type Sink struct {
	Path    string
	Name    string
	Place   Place
	OnError string
	Inputs  []string
	Edge    topology.Edge
	Given   any // encoder, as the program passed it
	Encode  RecordEncoder
	HasKeys bool // Encode returns Kafka records, and otherwise only values
	Found   []diagnostic.Diagnostic
}

// RecordEncoder makes the records of a sink. If the value is nil, nothing is written. With partition -1, Kafka chooses.
type RecordEncoder func(data any) (value, key []byte, partition int32)

// Values makes a record encoder of an encoder that returns only values. If encoder is nil, the result is nil.
func Values(encoder wa.Encoder) RecordEncoder {
	if encoder == nil {
		return nil
	}
	return func(data any) (value, key []byte, partition int32) { return encoder.Encode(data), nil, -1 }
}

// These are the kinds of steps, as they are in the document.
const (
	Computation           = "computation"
	ComputationMulti      = "computation_multi"
	StateComputation      = "state_computation"
	StateComputationMulti = "state_computation_multi"
	KeyBy                 = "key_by"
	Collect               = "collect"
	Window                = "window"
	Output                = "output"
)

// Step is a declared step. Its kind determines which user code it has: Build (makes the computation of a step without
// state), Stateful, Partition or Aggregation.
type Step struct {
	Path        string
	Name        string
	Kind        string
	Inputs      []string
	OnError     string
	Place       Place
	Symbol      string
	Build       func() Stateless
	Stateful    Stateful
	State       *State
	Partition   func(data any) []byte // also of a key_by
	Given       any                   // the partition function, as the program passed it
	Window      topology.Window
	Aggregation Aggregation
	Codec       string              // as in Source
	Input       reflect.Type        // type of its input messages; nil if the program does not state it
	Output      reflect.Type        // as in Source
	Outputs     []NamedOutput       // each becomes a step of kind Output
	Visits      []string            // names of the visits that a state step accepts
	Timers      []string            // names of the timers that a state step sets
	IsEvent     bool                // whether TTL and timers use event time
	Remote      *wa.RemoteComponent // component of another program; nil if this program runs the step
}

// State is the state of a state step.
type State struct {
	Name    string
	Builder wa.StateBuilder
	Class   string            // type of the objects that Builder makes
	Type    reflect.Type      // this type, since another type may have the same name
	Shape   map[string]string // shape of that type
	ByKey   bool              // a message has the state of the key that it carries
	Keys    []topology.DeclaredKey
	TTLMs   int                 // lifetime of a state after the last message of its key; 0 if it never ends
	Closed  bool                // keys that are not in Keys make dead letters
	Show    func(state any) any // converts a state for display; nil shows the state itself
	// Expiring is the part that the TTL ends; nil if the TTL ends the whole state.
	Expiring *Expiring
}

// Expiring describes a TTL that ends only a part of a state. Package goka uses it: the TTL ends the value in a group's
// table, and the rest of the state stays. When the TTL is over, Stateful.Visit runs for a visit without a name and
// removes the part. If a message leaves the state empty, the state is deleted.
type Expiring struct {
	Prolongs func(message any) bool // other messages neither have a time nor end states
	IsIn     func(state any) bool   // whether the state has the part
	IsEmpty  func(state any) bool
}

// IsTTL reports whether the topology permits a TTL: whole milliseconds, at most 100 years of 365 days.
func IsTTL(d time.Duration) bool {
	return d >= time.Millisecond && d%time.Millisecond == 0 && d.Milliseconds() <= 3_153_600_000_000
}

// IsTimed reports whether the step has timers or a TTL.
func (s *Step) IsTimed() bool { return len(s.Timers) > 0 || s.State != nil && s.State.TTLMs > 0 }

// Time returns the kind of time of the step's timers and TTL. It returns "" for a step without timers and TTL.
func (s *Step) Time() string {
	switch {
	case !s.IsTimed():
		return ""
	case s.IsEvent:
		return topology.EventTime
	}
	return topology.IngestTime
}

// Aggregation computes the result of a window from its messages, by an accumulator. Only Update may change an
// accumulator in place.
type Aggregation interface {
	InitialAccumulator() any
	Update(input, accumulator any) any
	Combine(first, second any) any
	Output(key []byte, accumulator any, bounds Bounds) emission.Results
}

// Bounds are the start and end of a window in milliseconds since 1970. A window of time includes StartMs and excludes
// EndMs. For other windows, the bounds are the times of the first and last message.
type Bounds struct{ StartMs, EndMs int64 }

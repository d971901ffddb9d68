package declaration

import (
	"reflect"

	wa "wallarooapi"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/timing"
	"wallarooapi/internal/topology"
)

// Source is a declared source.
type Source struct {
	Path      string
	Name      string
	Place     Place
	OnError   string
	Codec     string       // of its messages where they go to another worker; empty: this worker's own form
	Output    reflect.Type // of its messages; nil where the program does not say
	Edge      topology.Edge
	Given     any              // the decoder or generator, as the program gave it
	Decoder   wa.Decoder       // nil for a generator
	Framed    wa.FramedDecoder // the decoder of a TCP source; nil when something else was given
	Generator Generator
	EventTime func(payload []byte) int64 // nil where messages have the time of their arrival; a panic is a failure of the decoder
	Found     []diagnostic.Diagnostic    // what was wrong with how it was described
}

// Framing returns how the bytes of a TCP source are cut; no kind for other sources.
func (s *Source) Framing() topology.Framing {
	if edge, ok := s.Edge.(*topology.TCP); ok {
		return edge.Framing
	}
	return topology.Framing{}
}

// GivesKeys reports whether the messages of the source carry keys.
func (s *Source) GivesKeys() bool {
	switch edge := s.Edge.(type) {
	case *topology.Kafka, *topology.Connector:
		return true
	case *topology.Spark:
		return edge.Key != ""
	}
	return false
}

// GivesTimes reports whether the messages of the source have a time of their own, rather than that of their arrival.
func (s *Source) GivesTimes() bool {
	switch edge := s.Edge.(type) {
	case *topology.Kafka:
		return true
	case *topology.Spark:
		return edge.Timestamp != ""
	}
	return s.EventTime != nil
}

// Generator makes the messages of a source, each from the one before, until one is nil.
type Generator interface {
	InitialValue() any
	Apply(previous any) any
}

// RecordDecoder is a decoder that sees more of a record than its value.
type RecordDecoder interface {
	DecodeRecord(value []byte, record Record) any
}

// RowDecoder is a decoder whose messages are rows of Spark.
type RowDecoder interface {
	// EncodeRow returns the bytes of which the decoder makes a message.
	EncodeRow(message any) ([]byte, error)
}

// Record has the properties of a message of Kafka, Spark or a connector besides its value. The bytes must not be changed.
type Record struct {
	Key         []byte
	TimestampMs int64
	Headers     []byte // as in a frame
}

// Sink is a declared sink.
type Sink struct {
	Path    string
	Name    string
	Place   Place
	OnError string
	Inputs  []string
	Edge    topology.Edge
	Given   any           // the encoder, as the program gave it
	Encoder wa.Encoder    // gives bytes alone, or nil:
	Keyed   RecordEncoder // gives what a record of Kafka has
	Found   []diagnostic.Diagnostic
}

// RecordEncoder makes the records of a sink. A nil value writes nothing; partition is -1 where Kafka may choose.
type RecordEncoder func(data any) (value, key []byte, partition int32)

// The kinds of steps, as in the document.
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

// Step is a declared step. What its kind needs of Build, Compute, Multi, Partition and Aggregation is set; Build makes
// a computation of either stateless kind.
type Step struct {
	Path        string
	Name        string
	Kind        string
	Inputs      []string
	OnError     string
	Place       Place
	Symbol      string
	Build       func() (wa.Computation, wa.ComputationMulti)
	Compute     wa.StateComputation
	Multi       wa.StateComputationMulti
	State       *State
	Partition   func(data any) []byte // of a key_by too
	Given       any                   // the partition function
	Window      topology.Window
	Aggregation Aggregation
	Codec       string           // as that of a Source
	Input       reflect.Type     // of the messages that it takes; nil where the program does not say
	Output      reflect.Type     // as that of a Source
	Outputs     []NamedOutput    // each becomes a step of kind Output
	Visits      []string         // names of the visits that a state step takes
	Timers      []string         // names of the timers that a state step sets
	IsEvent     bool             // where the step has timers or its state ends: the time that counts is the messages' own
	Remote      *topology.Remote // what another program runs in its place; nil: this program runs it
}

// State is the state of a state step.
type State struct {
	Name    string
	Builder wa.StateBuilder
	Class   string            // type of the objects that Builder makes
	Shape   map[string]string // of that type
	ByKey   bool              // each message brings its key
	Keys    []topology.DeclaredKey
	TTLMs   int                 // how long a state lives after the last message of its key; 0: it stays
	Closed  bool                // keys outside Keys make dead letters
	Show    func(state any) any // what people see of a state; nil: the state itself
}

// IsTimed reports whether the step is concerned with time: it has timers, or its state ends.
func (s *Step) IsTimed() bool { return len(s.Timers) > 0 || s.State != nil && s.State.TTLMs > 0 }

// Timed is a wallarooapi.StateComputation whose functions may set timers.
type Timed interface {
	ComputeAt(call *timing.Changes, data, state any) (any, bool)
	// Fire runs the function of a timer.
	Fire(call *timing.Changes, timer *wa.Timer, state any) (any, bool)
}

// TimedMulti is a wallarooapi.StateComputationMulti whose functions may set timers.
type TimedMulti interface {
	ComputeAt(call *timing.Changes, data, state any) ([]any, bool)
	Fire(call *timing.Changes, timer *wa.Timer, state any) ([]any, bool)
}

// Aggregation is a window's function over its messages. Accumulators are immutable but for Update, which may change the
// one that it gets.
type Aggregation interface {
	InitialAccumulator() any
	Update(input, accumulator any) any
	Combine(first, second any) any
	Output(key []byte, accumulator any, bounds Bounds) any
}

// Bounds is when a window begins and ends, in milliseconds since 1970: of a window of time the first time that it holds and the
// first one that it does not, of others times of messages.
type Bounds struct{ StartMs, EndMs int64 }

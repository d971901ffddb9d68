package topology

import "cmp"

// Source is where messages come from.
type Source struct {
	Path    string
	Name    string
	Edge    Edge
	Codec   string // empty: native
	OnError string
}

// Step is a computation.
type Step struct {
	Path    string
	Name    string
	Kind    string
	Inputs  []string
	State   *State
	Window  Window // nil where the step is no window
	Visits  []string
	Timers  []string
	Time    string  // IngestTime or EventTime; empty where the step has no timers and its state stays
	Codec   string  // empty: native
	Remote  *Remote // nil: this program runs it
	OnError string
}

// The times that count for windows, timers and states that end.
const (
	IngestTime = "ingest"
	EventTime  = "event"
)

// State says which state a step uses and how messages find it.
type State struct {
	Name    string
	TTLMs   int  // 0: it stays
	ByKey   bool // of the message: neither Keys nor Unknown counts
	Keys    []DeclaredKey
	Unknown string
}

// Sink is where messages go.
type Sink struct {
	Path    string
	Name    string
	Edge    Edge
	Inputs  []string
	OnError string
}

// Window says which messages of a key an aggregation takes together: a RangeWindow, a SessionWindow or a CountWindow.
type Window interface{ tree() Object }

// RangeWindow takes the messages of a span of time; all times are milliseconds.
type RangeWindow struct {
	RangeMs int
	SlideMs int
	DelayMs int
	Late    string // drop, fire_per_message or place_in_oldest_window
	Time    string // ingest or event
}

func (w *RangeWindow) tree() Object {
	return Object{
		{"kind", "range"}, {"range_ms", w.RangeMs}, {"slide_ms", w.SlideMs}, {"delay_ms", w.DelayMs},
		{"late", w.Late}, {"time", w.Time},
	}
}

// SessionWindow takes messages without a longer gap between them; all times are milliseconds.
type SessionWindow struct {
	GapMs   int
	DelayMs int
	Late    string // as of a RangeWindow
	Time    string // IngestTime or EventTime
}

func (w *SessionWindow) tree() Object {
	return Object{{"kind", "session"}, {"gap_ms", w.GapMs}, {"delay_ms", w.DelayMs}, {"late", w.Late}, {"time", w.Time}}
}

// CountWindow takes a number of messages, or those there are after FlushMs without one.
type CountWindow struct {
	Count   int
	FlushMs int
}

func (w *CountWindow) tree() Object {
	return Object{{"kind", "count"}, {"count", w.Count}, {"flush_ms", w.FlushMs}}
}

func (s *Source) tree() Object {
	members := append(Object{{"path", s.Path}, {"name", s.Name}, {"kind", s.Edge.kind()}}, s.Edge.members()...)
	if _, made := s.Edge.(*Generator); !made {
		members = append(members, Member{"max_message_bytes", MaxMessageBytes})
	}
	members = append(members, Member{"codec", cmp.Or(s.Codec, Codec)}, Member{"worker", WorkerName})
	return withSome(members, "on_error", s.OnError)
}

func (s *Step) tree() Object {
	members := Object{{"path", s.Path}, {"name", s.Name}, {"kind", s.Kind}, {"inputs", texts(s.Inputs)}}
	if s.State != nil {
		members = append(members, Member{"state", s.State.tree()})
	}
	if s.Window != nil {
		members = append(members, Member{"window", s.Window.tree()})
	}
	if len(s.Visits) > 0 {
		members = append(members, Member{"visits", texts(s.Visits)})
	}
	if len(s.Timers) > 0 {
		members = append(members, Member{"timers", texts(s.Timers)})
	}
	members = withSome(members, "time", s.Time)
	members = append(members, Member{"codec", cmp.Or(s.Codec, Codec)})
	if s.Remote == nil {
		members = append(members, Member{"worker", WorkerName})
	} else {
		members = append(members, Member{"worker", s.Remote.Worker}, Member{"component", s.Remote.Name})
	}
	return withSome(members, "on_error", s.OnError)
}

func (s *State) tree() Object {
	key := Object{{"kind", "message"}}
	if !s.ByKey {
		values := arrayOf(s.Keys, (*DeclaredKey).tree)
		key = Object{{"kind", "partition"}, {"values", values}, {"unknown", s.Unknown}}
	}
	return append(withSome(Object{{"name", s.Name}}, "ttl_ms", s.TTLMs), Member{"codec", Codec}, Member{"key", key})
}

func (s *Sink) tree() Object {
	members := append(Object{{"path", s.Path}, {"name", s.Name}, {"kind", s.Edge.kind()}}, s.Edge.members()...)
	members = append(members, Member{"inputs", texts(s.Inputs)}, Member{"worker", WorkerName})
	return withSome(members, "on_error", s.OnError)
}

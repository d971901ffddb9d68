package topology

import "cmp"

// Source is a source of messages.
type Source struct {
	Path    string
	Name    string
	Edge    Edge
	Codec   string // empty for native
	OnError string
}

// Step is a computation.
type Step struct {
	Path    string
	Name    string
	Kind    string
	Inputs  []string
	State   *State
	Window  Window // nil if the step is not a window
	Visits  []string
	Timers  []string
	Time    string  // IngestTime or EventTime; empty if the step has no timers and its state has no TTL
	Codec   string  // empty for native
	Remote  *Remote // nil if this program runs the step
	OnError string
}

// These are the kinds of time for windows, timers and TTL.
const (
	IngestTime = "ingest"
	EventTime  = "event"
)

// State describes the state of a step and the keys of its messages.
type State struct {
	Name    string
	TTLMs   int  // 0 if the state never ends
	ByKey   bool // a message has the state of the key that it carries; Keys and Unknown are ignored
	Keys    []DeclaredKey
	Unknown string
}

// Sink is a destination of messages.
type Sink struct {
	Path    string
	Name    string
	Edge    Edge
	Inputs  []string
	OnError string
}

// Window describes which messages of a key are aggregated together: a RangeWindow, a SessionWindow or a CountWindow.
type Window interface{ tree() Object }

// RangeWindow aggregates the messages of a span of time. All times are in milliseconds.
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

// SessionWindow aggregates messages until a key has no message for GapMs. All times are in milliseconds.
type SessionWindow struct {
	GapMs   int
	DelayMs int
	Late    string // as in RangeWindow
	Time    string // IngestTime or EventTime
}

func (w *SessionWindow) tree() Object {
	return Object{{"kind", "session"}, {"gap_ms", w.GapMs}, {"delay_ms", w.DelayMs}, {"late", w.Late}, {"time", w.Time}}
}

// CountWindow aggregates a fixed number of messages, or fewer if no message arrives for FlushMs.
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

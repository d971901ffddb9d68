package topology

// These are the kinds of time for windows, timers and TTL.
const (
	IngestTime = "ingest"
	EventTime  = "event"
)

// Window describes which messages of a key are aggregated together: a RangeWindow, a SessionWindow or a CountWindow.
type Window interface{ Tree() Object }

// RangeWindow aggregates the messages of a span of time. All times are in milliseconds.
type RangeWindow struct {
	RangeMs int
	SlideMs int
	DelayMs int
	Late    string // drop, fire_per_message or place_in_oldest_window
	Time    string // IngestTime or EventTime
}

// Tree returns the window in the form of the topology document.
func (w *RangeWindow) Tree() Object {
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
	Time    string // as in RangeWindow
}

// Tree returns the window in the form of the topology document.
func (w *SessionWindow) Tree() Object {
	return Object{{"kind", "session"}, {"gap_ms", w.GapMs}, {"delay_ms", w.DelayMs}, {"late", w.Late}, {"time", w.Time}}
}

// CountWindow aggregates a fixed number of messages, or fewer if no message arrives for FlushMs.
type CountWindow struct {
	Count   int
	FlushMs int
}

// Tree returns the window in the form of the topology document.
func (w *CountWindow) Tree() Object {
	return Object{{"kind", "count"}, {"count", w.Count}, {"flush_ms", w.FlushMs}}
}

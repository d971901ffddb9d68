package window

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// timed is the common part of windows that end at a time: ranges and sessions.
type timed struct {
	base
	kind    kind
	delay   int64
	silence int64  // time after its last message for which a key keeps its state
	late    string // see topology.RangeWindow
	isEvent bool
	waits   bool // ticks have clock times while messages have event times
}

// kind contains the operations that differ between ranges and sessions.
type kind interface {
	// begin initializes the state of a key. time is the time of the first message.
	begin(s *KeyState, time int64)
	// end returns the end of the oldest open window.
	end(s *KeyState) int64
	// isLate reports whether a message is too late for all open windows.
	isLate(s *KeyState, time int64) bool
	// add adds a message that is not late.
	add(s *KeyState, message any, time int64)
	// oldestPane returns the pane of the oldest open window, which receives late messages.
	oldestPane(s *KeyState) *pane
	// advance appends the results of the windows that are due at until to given, and returns the longer list.
	// time is the time of the message or tick that makes the windows due.
	advance(s *KeyState, until, time int64, given []Result) []Result
}

// newTimed sets all fields except kind. hasWatermarks means that ticks have event times in place of clock times.
func newTimed(b base, delay, silence int64, late, time string, hasWatermarks bool) *timed {
	isEvent := time == topology.EventTime
	return &timed{base: b, delay: delay, silence: silence, late: late, isEvent: isEvent, waits: isEvent && !hasWatermarks}
}

func (w *timed) Waits() bool { return w.waits }

func (w *timed) Enter(s *KeyState, isNew bool, message any, time int64) (given []Result, isOver bool) {
	if s.low <= time && time < s.high {
		w.update(s.current, message)
		s.latest, s.current.last = max(s.latest, time), max(s.current.last, time)
		return nil, false
	}
	switch {
	case isNew:
		w.kind.begin(s, time)
	case time >= s.latest+w.silence:
		given = w.beginAnew(s, time)
	case time >= w.kind.end(s)+w.delay:
		given = w.kind.advance(s, time, time, nil)
	case w.isStuck(s, time):
		latest := s.latest
		given = append(w.beginAnew(s, time), Result{Time: time, IsStuck: true, Latest: latest})
	}
	if !w.kind.isLate(s, time) {
		s.isSilent, s.isLate = false, false
		w.kind.add(s, message, time)
		return given, false
	}
	s.low, s.high, s.isLate = 0, 0, true
	if !w.isEvent && !s.isSilent {
		s.isSilent, s.silentSince = true, time
	}
	switch {
	case w.late == "place_in_oldest_window":
		w.update(w.kind.oldestPane(s), message)
	case w.late == "fire_per_message":
		alone := w.aggregation.Update(message, w.aggregation.InitialAccumulator())
		given = w.give(s, alone, time, declaration.Bounds{StartMs: time, EndMs: time}, given)
	default:
		given = append(given, Result{Time: time, IsDropped: true})
	}
	return given, false
}

// isStuck reports whether all messages of a key have been late for longer than w.silence, because the time of an
// earlier message was far ahead. Then the windows of the key begin again. With event times isStuck returns false: Tick
// does this check.
func (w *timed) isStuck(s *KeyState, time int64) bool {
	return !w.isEvent && s.isSilent && time >= s.silentSince+w.silence && w.kind.isLate(s, time)
}

// beginAnew ends all windows of a key. The next window begins with a message at this time.
func (w *timed) beginAnew(s *KeyState, time int64) []Result {
	given := w.kind.advance(s, s.latest+w.silence, time, nil)
	s.reset()
	w.kind.begin(s, time)
	return given
}

func (w *timed) Due(s *KeyState) (int64, bool) {
	if w.waits {
		return s.silentSince + w.silence, s.isSilent
	}
	return min(w.kind.end(s)+w.delay, s.latest+w.silence), true
}

func (w *timed) Tick(s *KeyState, time int64) (given []Result, isOver bool) {
	last := s.latest + w.silence
	if isOver = w.waits || time >= last; isOver {
		given = w.kind.advance(s, last, time, nil)
		if w.waits && s.isLate && s.latest > time {
			given = append(given, Result{Time: time, IsStuck: true, Latest: s.latest})
		}
		return given, true
	}
	return w.kind.advance(s, time, time, nil), false
}

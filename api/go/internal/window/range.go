package window

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// span gives a result per span of time.
type span struct {
	base
	length, slide, delay int64
	silence              int64 // how long a key without messages keeps its state
	pane                 int64 // length of a pane
	late                 string
	isEvent              bool
	waits                bool // ticks have times of the clock, messages those of the data
}

func newRange(b base, w *topology.RangeWindow, hasWatermarks bool) *span {
	length, slide, delay := int64(w.RangeMs), int64(w.SlideMs), int64(w.DelayMs)
	delay = (delay + slide - 1) / slide * slide
	divisor := length
	for rest := slide; rest != 0; {
		divisor, rest = rest, divisor%rest
	}
	return &span{b, length, slide, delay, 2 * (length + delay), divisor, w.Late, w.Time == "event", w.Time == "event" && !hasWatermarks}
}

func (r *span) Waits() bool { return r.waits }

func (r *span) IsOver(*State) bool { return false }

func (r *span) Enter(s *State, isNew bool, message any, time int64) (given []Result) {
	if s.low <= time && time < s.high {
		r.update(s.current, message)
		s.latest = max(s.latest, time)
		return nil
	}
	switch {
	case isNew:
		r.begin(s, time)
	case time >= s.latest+r.silence:
		given = r.beginAnew(s, time)
	case time >= r.end(s)+r.delay:
		given = r.advance(s, time, time, nil)
	case r.isStuck(s, time):
		latest := s.latest
		given = append(r.beginAnew(s, time), Result{Time: time, IsStuck: true, Latest: latest})
	}
	if time >= r.oldest(s) {
		s.isSilent, s.isLate = false, false
		r.add(s, message, time)
		return given
	}
	s.low, s.high, s.isLate = 0, 0, true
	if !r.isEvent && !s.isSilent {
		s.isSilent, s.silentSince = true, time
	}
	switch {
	case r.late == "place_in_oldest_window":
		r.update(s.pane(s.oldest*(r.slide/r.pane), r.aggregation.InitialAccumulator), message)
	case r.late == "fire_per_message":
		alone := &pane{accumulator: r.aggregation.InitialAccumulator()}
		r.update(alone, message)
		given = r.give(s, alone.accumulator, time, declaration.Bounds{StartMs: time, EndMs: time}, given)
	default:
		given = append(given, Result{Time: time, IsDropped: true})
	}
	return given
}

// oldest returns the begin of the oldest open window.
func (r *span) oldest(s *State) int64 { return s.first + s.oldest*r.slide }

// isStuck reports whether messages have been late for the longest silence; by event time only ticks decide.
func (r *span) isStuck(s *State, time int64) bool {
	return !r.isEvent && s.isSilent && time < r.oldest(s) && time >= s.silentSince+r.silence
}

func (r *span) beginAnew(s *State, time int64) []Result {
	given := r.advance(s, s.latest+r.silence, time, nil)
	s.reset()
	r.begin(s, time)
	return given
}

func (r *span) Due(s *State) (int64, bool) {
	if r.waits {
		return s.silentSince + r.silence, s.isSilent
	}
	return min(r.end(s)+r.delay, s.latest+r.silence), true
}

func (r *span) Tick(s *State, time int64) (given []Result, isOver bool) {
	last := s.latest + r.silence
	if isOver = r.waits || time >= last; isOver {
		given = r.advance(s, last, time, nil)
		if r.waits && s.isLate && s.latest > time {
			given = append(given, Result{Time: time, IsStuck: true, Latest: s.latest})
		}
		return given, true
	}
	return r.advance(s, time, time, nil), false
}

// begin makes a state that of a key whose first message has this time.
func (r *span) begin(s *State, time int64) {
	s.first, s.latest = time, time
	s.oldest = -((r.length + r.delay) / r.slide)
	if (r.length+r.delay)%r.slide == 0 {
		s.oldest++
	}
}

// end returns the end of the oldest open window.
func (r *span) end(s *State) int64 { return r.oldest(s) + r.length }

func (r *span) add(s *State, message any, time int64) {
	number := floor(time-s.first, r.pane)
	p := s.pane(number, r.aggregation.InitialAccumulator)
	r.update(p, message)
	s.latest = max(s.latest, time)
	s.current, s.low = p, s.first+number*r.pane
	s.high = min(s.low+r.pane, r.end(s)+r.delay, s.latest+r.silence)
}

func floor(a, b int64) int64 {
	if a < 0 && a%b != 0 {
		return a/b - 1
	}
	return a / b
}

// advance emits the windows that are due at the time until; time is that of what makes them due.
func (r *span) advance(s *State, until, time int64, given []Result) []Result {
	s.low, s.high = 0, 0
	for end := r.end(s); end+r.delay <= until; end = r.end(s) {
		begin := s.oldest * (r.slide / r.pane)
		inside := s.between(begin, begin+r.length/r.pane)
		s.hasBegun = s.hasBegun || len(inside) > 0
		if s.hasBegun {
			at := time
			if r.isEvent {
				at = end - 1
			}
			given = r.result(s, inside, at, declaration.Bounds{StartMs: end - r.length, EndMs: end}, given)
		}
		s.forget(begin + r.slide/r.pane)
		s.oldest++
	}
	return given
}

func (r *span) result(s *State, inside []*pane, time int64, bounds declaration.Bounds, given []Result) []Result {
	accumulator, failed := r.join(inside, time)
	if failed != nil {
		return append(given, *failed)
	}
	return r.give(s, accumulator, time, bounds, given)
}

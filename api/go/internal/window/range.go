package window

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// span implements range windows. Their starts and ends divide time into panes of equal length. A pane has one
// accumulator, which all windows that overlap there share.
type span struct {
	*timed
	length, slide int64
	pane          int64 // length of a pane
}

func newRange(b base, w *topology.RangeWindow, hasWatermarks bool) *timed {
	length, slide, delay := int64(w.RangeMs), int64(w.SlideMs), int64(w.DelayMs)
	delay = (delay + slide - 1) / slide * slide
	divisor := length
	for rest := slide; rest != 0; {
		divisor, rest = rest, divisor%rest
	}
	made := newTimed(b, delay, 2*(length+delay), w.Late, w.Time, hasWatermarks)
	made.kind = &span{made, length, slide, divisor}
	return made
}

// oldest returns the start of the oldest open window.
func (r *span) oldest(s *KeyState) int64 { return s.first + s.oldest*r.slide }

func (r *span) isLate(s *KeyState, time int64) bool { return time < r.oldest(s) }

func (r *span) oldestPane(s *KeyState) *pane {
	return s.pane(s.oldest*(r.slide/r.pane), r.aggregation.InitialAccumulator)
}

func (r *span) begin(s *KeyState, time int64) {
	s.first, s.latest = time, time
	s.oldest = -((r.length + r.delay - 1) / r.slide)
}

func (r *span) end(s *KeyState) int64 { return r.oldest(s) + r.length }

func (r *span) add(s *KeyState, message any, time int64) {
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

func (r *span) advance(s *KeyState, until, time int64, given []Result) []Result {
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

func (r *span) result(s *KeyState, inside []*pane, time int64, bounds declaration.Bounds, given []Result) []Result {
	accumulator, failed := r.join(inside, time)
	if failed != nil {
		return append(given, *failed)
	}
	return r.give(s, accumulator, time, bounds, given)
}

package window

import (
	"slices"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// session implements session windows. Each session is a pane, whose number is the time of the session's first message.
// A key with state has at least one open session. KeyState.oldest is the time of the latest tick that ended a session.
type session struct {
	*timed
	gap int64
}

func newSession(b base, w *topology.SessionWindow, hasWatermarks bool) *timed {
	gap, delay := int64(w.GapMs), int64(w.DelayMs)
	made := newTimed(b, delay, gap+delay, w.Late, w.Time, hasWatermarks)
	made.kind = &session{made, gap}
	return made
}

func (w *session) begin(s *KeyState, time int64) {
	s.first, s.latest, s.oldest, s.hasLasts = time, time, time, true
}

func (w *session) end(s *KeyState) int64 { return s.panes[0].last + w.gap }

// of returns the sessions to which a message with this time belongs, as indexes from (included) and to (excluded).
func (w *session) of(s *KeyState, time int64) (from, to int) {
	from = len(s.panes)
	for from > 0 && s.panes[from-1].last+w.gap > time {
		from--
	}
	to = from
	for to < len(s.panes) && s.panes[to].number-w.gap < time {
		to++
	}
	return from, to
}

func (w *session) isLate(s *KeyState, time int64) bool {
	if time+w.silence > max(s.latest, s.oldest) {
		return false
	}
	from, to := w.of(s, time)
	return from == to
}

func (w *session) oldestPane(s *KeyState) *pane { return s.panes[0] }

func (w *session) add(s *KeyState, message any, time int64) {
	from, to := w.of(s, time)
	if from == to {
		s.panes = slices.Insert(s.panes, from, &pane{number: time, last: time, accumulator: w.aggregation.InitialAccumulator()})
		to++
	}
	p := s.panes[from]
	for _, later := range s.panes[from+1 : to] {
		p.accumulator = w.aggregation.Combine(p.accumulator, later.accumulator)
	}
	w.update(p, message)
	p.number, p.last = min(p.number, time), max(s.panes[to-1].last, time)
	s.panes = slices.Delete(s.panes, from+1, to)
	s.latest = max(s.latest, time)
	s.low, s.high = 0, 0
	if p.last == s.latest {
		s.current, s.low, s.high = p, p.number, min(p.last+w.gap, w.end(s)+w.delay)
	}
}

func (w *session) advance(s *KeyState, until, time int64, given []Result) []Result {
	s.low, s.high = 0, 0
	emitted := 0
	for _, p := range s.panes {
		end := p.last + w.gap
		if end+w.delay > until {
			break
		}
		at := time
		if w.isEvent {
			at = end - 1
		}
		given = w.give(s, p.accumulator, at, declaration.Bounds{StartMs: p.number, EndMs: end}, given)
		s.oldest = until
		emitted++
	}
	s.panes = slices.Delete(s.panes, 0, emitted)
	return given
}

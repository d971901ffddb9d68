package window

import "wallarooapi/internal/declaration"

// count implements count windows, which end after a fixed number of messages. The state of a key has one pane, and
// KeyState.oldest is the number of messages in this pane.
type count struct {
	base
	size, flush int64
	waits       bool // ticks have clock times, which only show silence
}

func (c *count) Waits() bool { return c.waits }

func (c *count) Enter(s *KeyState, isNew bool, message any, time int64) ([]Result, bool) {
	if isNew {
		s.pane(0, c.aggregation.InitialAccumulator)
		s.first = time
	}
	p := s.panes[0]
	c.update(p, message)
	s.oldest++
	s.latest, s.isSilent = time, false
	if s.oldest == c.size {
		return c.give(s, p.accumulator, time, declaration.Bounds{StartMs: s.first, EndMs: time}, nil), true
	}
	return nil, false
}

func (c *count) Due(s *KeyState) (int64, bool) {
	if c.waits {
		return s.silentSince + c.flush, s.isSilent
	}
	return s.latest + c.flush, true
}

func (c *count) Tick(s *KeyState, _ int64) ([]Result, bool) {
	return c.give(s, s.panes[0].accumulator, s.latest, declaration.Bounds{StartMs: s.first, EndMs: s.latest}, nil), true
}

package window

import (
	"container/heap"
	"iter"
	"math"
	"slices"
)

// Calendar knows which keys of one step in one bucket a tick concerns.
type Calendar struct {
	windows Windows
	fresh   map[string]*State // the next tick has to look at them: they got a message since the last one
	dues    dues
	last    int64 // time of the last tick, as far as it matters to a key
}

// NewCalendar makes the calendar of a step without keys.
func NewCalendar(windows Windows) *Calendar {
	return &Calendar{windows: windows, fresh: map[string]*State{}, last: math.MinInt64}
}

// Enroll sees that the tick that concerns a state next will find it.
func (c *Calendar) Enroll(s *State) {
	at, ok := c.windows.Due(s)
	switch {
	case !ok:
		c.fresh[string(s.Key)] = s
	case !s.isQueued || at < s.queuedAt:
		s.isQueued, s.queuedAt = true, at
		heap.Push(&c.dues, due{at, s})
	}
}

// Drop forgets a state.
func (c *Calendar) Drop(s *State) {
	delete(c.fresh, string(s.Key))
	s.isQueued = false
}

// Fill enrolls the states that a state log gave.
func (c *Calendar) Fill(states iter.Seq[*State]) {
	for s := range states {
		if s.isSilent {
			c.last = max(c.last, s.silentSince)
		}
		c.Enroll(s)
	}
}

// Silence reports the keys without a message since the last tick that this one came; changed is called for each. A key that fell silent
// at a later time does so now: the clock was set back.
func (c *Calendar) Silence(time int64, all iter.Seq[*State], changed func(*State)) {
	if !c.windows.Waits() {
		return
	}
	if time < c.last {
		for s := range all {
			if s.isSilent && s.silentSince > time {
				s.silentSince = time
				changed(s)
				c.Enroll(s)
			}
		}
	}
	c.last = time
	waiting := c.fresh
	c.fresh = map[string]*State{}
	for _, s := range waiting {
		s.isSilent, s.silentSince = true, time
		s.low, s.high = 0, 0
		changed(s)
		c.Enroll(s)
	}
}

// Due takes the states out of the calendar to which a tick gives something to do, in the order of their keys.
func (c *Calendar) Due(time int64) (states []*State) {
	for len(c.dues) > 0 && c.dues[0].time <= time {
		next := heap.Pop(&c.dues).(due)
		s := next.state
		if !s.isQueued || s.queuedAt != next.time {
			continue
		}
		s.isQueued = false
		if at, ok := c.windows.Due(s); !ok || at > time {
			c.Enroll(s)
			continue
		}
		states = append(states, s)
	}
	slices.SortFunc(states, func(a, b *State) int { return slices.Compare(a.Key, b.Key) })
	return states
}

// due is a state and the time under which it was filed.
type due struct {
	time  int64
	state *State
}

// dues is a heap, the earliest first.
type dues []due

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].time < d[j].time }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(item any)     { *d = append(*d, item.(due)) }

func (d *dues) Pop() any {
	last := len(*d) - 1
	item := (*d)[last]
	(*d)[last] = due{}
	*d = (*d)[:last]
	return item
}

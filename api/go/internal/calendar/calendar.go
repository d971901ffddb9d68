// Package calendar knows which keys of a step in one bucket the next ticks concern.
package calendar

import (
	"container/heap"
	"iter"
	"math"
	"slices"
)

// FirstMs and LastMs are the times that messages of windows and timed steps can have: the years 1 to 9999.
const FirstMs, LastMs = -62_135_596_800_000, 253_402_300_799_999

// Never is when a key is due that no tick concerns before its next message.
const Never = math.MaxInt64

// Item is a step's record of a key's time.
type Item interface {
	comparable
	// Place returns the item's place in the calendar, for the calendar alone.
	Place() *Slot
	// SilentSince returns the time of the first tick after the key's last message in time; is is false where none came.
	SilentSince() (time int64, is bool)
	// FallSilent notes that time; Due is then known.
	FallSilent(time int64)
}

// Slot is the place of an item.
type Slot struct {
	time  int64 // under which it was filed; it may be due later
	index int   // in the heap, from 1; 0: it is not there
}

// Place returns the slot, for items that embed it.
func (s *Slot) Place() *Slot { return s }

// Rules are a calendar's questions about items.
type Rules[I Item] struct {
	// Due returns the time of the first tick that gives the item something to do; known is false until the next tick.
	Due func(I) (time int64, known bool)
	// Compare orders items by their keys.
	Compare func(a, b I) int
	// Waits says that ticks report silence instead of advancing time.
	Waits bool
}

// Calendar knows which keys of one step in one bucket a tick concerns. Each has one place in it at most.
type Calendar[I Item] struct {
	rules Rules[I]
	fresh map[I]bool // the next tick has to look at them: they got a message since the last one
	dues  dues[I]
	last  int64 // time of the last tick, as far as it matters to a key
}

// New makes the calendar of a step without keys.
func New[I Item](rules Rules[I]) *Calendar[I] {
	return &Calendar[I]{rules: rules, fresh: map[I]bool{}, last: math.MinInt64}
}

// Enroll sees that the tick that concerns an item next will find it.
func (c *Calendar[I]) Enroll(item I) {
	at, known := c.rules.Due(item)
	slot := item.Place()
	switch {
	case !known:
		c.fresh[item] = true
	case at == Never:
		c.Drop(item)
	case slot.index == 0:
		slot.time = at
		heap.Push(&c.dues, item)
	case at < slot.time:
		slot.time = at
		heap.Fix(&c.dues, slot.index-1)
	}
}

// Drop forgets an item.
func (c *Calendar[I]) Drop(item I) {
	delete(c.fresh, item)
	if slot := item.Place(); slot.index > 0 {
		heap.Remove(&c.dues, slot.index-1)
	}
}

// Fill enrolls the items that a state log gave.
func (c *Calendar[I]) Fill(items iter.Seq[I]) {
	for item := range items {
		if since, is := item.SilentSince(); is {
			c.last = max(c.last, since)
		}
		c.Enroll(item)
	}
}

// Silence reports the keys without a message since the last tick that this one came; changed is called for each. A key that fell silent
// at a later time does so now: the clock was set back.
func (c *Calendar[I]) Silence(time int64, all iter.Seq[I], changed func(I)) {
	if c.rules.Waits && time < c.last {
		for item := range all {
			if since, is := item.SilentSince(); is && since > time {
				c.silence(item, time, changed)
			}
		}
	}
	c.last = time
	waiting := c.fresh
	c.fresh = map[I]bool{}
	for item := range waiting {
		c.silence(item, time, changed)
	}
}

func (c *Calendar[I]) silence(item I, time int64, changed func(I)) {
	item.FallSilent(time)
	changed(item)
	c.Enroll(item)
}

// Due takes the items out of the calendar to which a tick gives something to do, in the order of their keys.
func (c *Calendar[I]) Due(time int64) (items []I) {
	for len(c.dues) > 0 && c.dues[0].Place().time <= time {
		item := heap.Pop(&c.dues).(I)
		if at, known := c.rules.Due(item); !known || at > time {
			c.Enroll(item)
			continue
		}
		items = append(items, item)
	}
	slices.SortFunc(items, c.rules.Compare)
	return items
}

// Next returns a time before which no tick concerns a key; Never if none does.
func (c *Calendar[I]) Next() int64 {
	switch {
	case len(c.fresh) > 0:
		return math.MinInt64
	case len(c.dues) == 0:
		return Never
	}
	return c.dues[0].Place().time
}

// dues is a heap, the earliest first.
type dues[I Item] []I

func (d dues[I]) Len() int           { return len(d) }
func (d dues[I]) Less(i, j int) bool { return d[i].Place().time < d[j].Place().time }

func (d dues[I]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].Place().index, d[j].Place().index = i+1, j+1
}

func (d *dues[I]) Push(item any) {
	*d = append(*d, item.(I))
	item.(I).Place().index = len(*d)
}

func (d *dues[I]) Pop() any {
	last := len(*d) - 1
	item := (*d)[last]
	item.Place().index = 0
	clear((*d)[last:])
	*d = (*d)[:last]
	return item
}

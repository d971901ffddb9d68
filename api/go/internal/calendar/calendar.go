// Package calendar finds the keys of a step for which a tick has work: windows end, timers fire, or a TTL is over.
package calendar

import (
	"container/heap"
	"iter"
	"math"
	"slices"
)

// FirstMs and LastMs are the earliest and latest time of a message for windows and timed steps: the start of year 1 and
// the end of year 9999.
const FirstMs, LastMs = -62_135_596_800_000, 253_402_300_799_999

// Never is the due time of a key that needs no tick before its next message.
const Never = math.MaxInt64

// Item is the entry of one key in a calendar: an object in which the step keeps the times of this key.
type Item interface {
	comparable
	// Place returns the item's slot. Only the calendar uses it.
	Place() *Slot
	// SilentSince returns the time of the first tick after the key's last message. The second result is false if no
	// tick followed.
	SilentSince() (time int64, is bool)
	// FallSilent sets the time that SilentSince returns. Afterwards Due is known.
	FallSilent(time int64)
}

// Slot is the position of an item in the heap of a calendar. Types of items embed it.
type Slot struct {
	time  int64 // due time at which the item was stored; the item may be due later
	index int   // index in the heap plus 1; 0 if the item is not in the heap
}

// Place returns the slot itself, for items that embed it.
func (s *Slot) Place() *Slot { return s }

// Rules has the functions by which a calendar finds the due times of its items and their order.
type Rules[I Item] struct {
	// Due returns the time of the first tick that has an effect on the item. known is false if this depends on the
	// next tick.
	Due func(I) (time int64, known bool)
	// Compare orders items by their keys.
	Compare func(a, b I) int
	// Waits means that ticks indicate silence in place of advancing time.
	Waits bool
}

// Calendar contains the keys of one step in one bucket for which a later tick has work. Each key is in it at most once.
type Calendar[I Item] struct {
	rules Rules[I]
	items iter.Seq[I]
	fresh map[I]bool // items with a message since the last tick; the next tick must check them
	dues  dues[I]
	last  int64 // time of the last tick; at first, the latest tick that the items know
}

// New makes the calendar of a step. items yields the items of all keys that have a state. If the clock is set back,
// Tick calls items again.
func New[I Item](rules Rules[I], items iter.Seq[I]) *Calendar[I] {
	c := &Calendar[I]{rules: rules, items: items, fresh: map[I]bool{}, last: math.MinInt64}
	for item := range items {
		if since, is := item.SilentSince(); is {
			c.last = max(c.last, since)
		}
		c.Enroll(item)
	}
	return c
}

// Enroll adds an item, or moves it after its due time has changed.
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

// Drop removes an item.
func (c *Calendar[I]) Drop(item I) {
	delete(c.fresh, item)
	if slot := item.Place(); slot.index > 0 {
		heap.Remove(&c.dues, slot.index-1)
	}
}

// Tick removes and returns the items that are due at a tick, in the order of their keys. Before that, it marks keys as
// silent since this tick, and calls changed for each of them. These are the keys that had a message since the tick
// before and, if the clock was set back, those whose silence began at a later time.
func (c *Calendar[I]) Tick(time int64, changed func(I)) (due []I) {
	if c.rules.Waits && time < c.last {
		for item := range c.items {
			if since, is := item.SilentSince(); is && since > time {
				c.fresh[item] = true
			}
		}
	}
	waiting := c.fresh
	c.last, c.fresh = time, map[I]bool{}
	for item := range waiting {
		item.FallSilent(time)
		changed(item)
		c.Enroll(item)
	}
	for len(c.dues) > 0 && c.dues[0].Place().time <= time {
		item := heap.Pop(&c.dues).(I)
		if at, known := c.rules.Due(item); !known || at > time {
			c.Enroll(item)
			continue
		}
		due = append(due, item)
	}
	slices.SortFunc(due, c.rules.Compare)
	return due
}

// dues is a heap with the earliest due time first.
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

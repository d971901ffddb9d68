// Package window computes the effect of a message or a tick on the windows of one key, and their results. SPECIFICATION.md,
// section 8, says what is right.
package window

import (
	"bytes"
	"fmt"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/trace"
)

// Result is a value that a window emitted.
type Result struct {
	Value       any // nil where it failed
	Time        int64
	Failed      string // why combine or output failed
	Stack       string
	Accumulator any  // that output was to get, or that could not be combined
	IsDropped   bool // nothing was emitted: the message came too late
	IsStuck     bool // nothing was emitted: a message of the time Latest had made all others late, and the key begins again
	Latest      int64
}

// Windows are the windows of one step.
type Windows interface {
	// Enter adds a message to the state of its key. A panic of the aggregation's functions that make or update accumulators goes
	// through; the state is then spoilt.
	Enter(s *KeyState, isNew bool, message any, time int64) []Result
	// IsOver reports whether a key has no more state after a message.
	IsOver(s *KeyState) bool
	// Due returns the time of the first tick that emits something; ok is false where only a tick can tell.
	Due(s *KeyState) (time int64, ok bool)
	// Tick returns what a tick that is due emits, and whether the key has no more state.
	Tick(s *KeyState, time int64) (given []Result, isOver bool)
	// Waits reports whether ticks report silence instead of advancing time.
	Waits() bool
}

// NewCalendar makes the calendar of windows.
func NewCalendar(windows Windows) *calendar.Calendar[*KeyState] {
	return calendar.New(calendar.Rules[*KeyState]{Due: windows.Due, Waits: windows.Waits(), Compare: func(a, b *KeyState) int {
		return bytes.Compare(a.Key, b.Key)
	}})
}

// Of returns the windows of a declared step; hasWatermarks: ticks have times of the data, not of the clock.
func Of(step *declaration.Step, hasWatermarks bool) (Windows, error) {
	base := base{step.Aggregation}
	switch described := step.Window.(type) {
	case *topology.RangeWindow:
		return newRange(base, described).movedBy(hasWatermarks), nil
	case *topology.SessionWindow:
		return newSession(base, described).movedBy(hasWatermarks), nil
	case *topology.CountWindow:
		return &count{base, int64(described.Count), int64(described.FlushMs)}, nil
	}
	return nil, fmt.Errorf("step %s has windows of type %T", step.Path, step.Window)
}

// base has the fields of all kinds.
type base struct{ aggregation declaration.Aggregation }

func (b base) update(p *pane, message any) {
	p.accumulator = b.aggregation.Update(message, p.accumulator)
}

// give adds the result of a window whose accumulators are joined; a panic of output is a result too.
func (b base) give(s *KeyState, accumulator any, time int64, bounds declaration.Bounds, given []Result) (after []Result) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			after = append(given, Result{Time: time, Failed: reason, Stack: stack, Accumulator: accumulator})
		}
	}()
	if value := b.aggregation.Output(s.Key, accumulator, bounds); value != nil {
		given = append(given, Result{Value: value, Time: time})
	}
	return given
}

// join combines panes in order; a panic is a result.
func (b base) join(panes []*pane, time int64) (accumulator any, failed *Result) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			failed = &Result{Time: time, Failed: reason, Stack: stack, Accumulator: accumulator}
		}
	}()
	accumulator = b.aggregation.InitialAccumulator()
	for _, p := range panes {
		accumulator = b.aggregation.Combine(accumulator, p.accumulator)
	}
	return accumulator, nil
}

// count gives a result for every so many messages; State.oldest counts them.
type count struct {
	base
	size, flush int64
}

func (c *count) Waits() bool { return true }

func (c *count) Enter(s *KeyState, isNew bool, message any, time int64) []Result {
	if isNew {
		s.pane(0, c.aggregation.InitialAccumulator)
		s.first = time
	}
	p := s.panes[0]
	c.update(p, message)
	s.oldest++
	s.latest, s.isSilent = time, false
	if s.oldest == c.size {
		return c.give(s, p.accumulator, time, declaration.Bounds{StartMs: s.first, EndMs: time}, nil)
	}
	return nil
}

func (c *count) IsOver(s *KeyState) bool { return s.oldest == c.size }

func (c *count) Due(s *KeyState) (int64, bool) { return s.silentSince + c.flush, s.isSilent }

func (c *count) Tick(s *KeyState, _ int64) ([]Result, bool) {
	return c.give(s, s.panes[0].accumulator, s.latest, declaration.Bounds{StartMs: s.first, EndMs: s.latest}, nil), true
}

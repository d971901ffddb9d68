// Package window determines how messages and ticks change the windows of one key, and computes the results of windows.
// SPECIFICATION.md, section 8, defines the behaviour.
package window

import (
	"bytes"
	"fmt"
	"iter"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/trace"
)

// Result is the outcome of a window that has ended, or of a message that came too late for its window.
type Result struct {
	Results     emission.Results // empty if the window failed
	Time        int64
	Failed      string // error of Combine or Output
	Stack       string
	Accumulator any  // accumulator for which Output or Combine failed
	IsDropped   bool // there is no value, because the message was too late
	IsStuck     bool // there is no value; a message with the time Latest had made all others late, and the key starts again
	Latest      int64
}

// Windows implements the windows of one step. It has no state: a KeyState holds the windows of each key.
type Windows interface {
	// Enter adds a message to the state of its key. It returns results, and whether the state of the key ends. If Update
	// or InitialAccumulator panics, Enter does not recover, and the state is unusable.
	Enter(s *KeyState, isNew bool, message any, time int64) (given []Result, isOver bool)
	// Due returns the time of the first tick that changes the state or has results. ok is false if it is unknown.
	Due(s *KeyState) (time int64, ok bool)
	// Tick returns the results of a tick that is due, and whether the state of the key ends.
	Tick(s *KeyState, time int64) (given []Result, isOver bool)
	// Waits reports whether ticks only show that a key has fallen silent. Otherwise ticks advance time.
	Waits() bool
}

// NewCalendar makes the calendar of a bucket, which finds the keys whose windows end at a tick.
func NewCalendar(windows Windows, states iter.Seq[*KeyState]) *calendar.Calendar[*KeyState] {
	byKey := func(a, b *KeyState) int { return bytes.Compare(a.Key, b.Key) }
	return calendar.New(calendar.Rules[*KeyState]{Due: windows.Due, Waits: windows.Waits(), Compare: byKey}, states)
}

// Of makes the windows of a declared step. hasWatermarks means that ticks have event times in place of clock times.
func Of(step *declaration.Step, hasWatermarks bool) (Windows, error) {
	base := base{step.Aggregation}
	switch described := step.Window.(type) {
	case *topology.RangeWindow:
		return newRange(base, described, hasWatermarks), nil
	case *topology.SessionWindow:
		return newSession(base, described, hasWatermarks), nil
	case *topology.CountWindow:
		return &count{base, int64(described.Count), int64(described.FlushMs), !hasWatermarks}, nil
	}
	return nil, fmt.Errorf("step %s has windows of type %T", step.Path, step.Window)
}

// base is the common part of all kinds of windows.
type base struct{ aggregation declaration.Aggregation }

func (b base) update(p *pane, message any) {
	p.accumulator = b.aggregation.Update(message, p.accumulator)
}

// give computes the result of a window from its accumulator and appends it to given. If Output panics, give appends a
// failed result.
func (b base) give(s *KeyState, accumulator any, time int64, bounds declaration.Bounds, given []Result) (after []Result) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			after = append(given, Result{Time: time, Failed: reason, Stack: stack, Accumulator: accumulator})
		}
	}()
	if results := b.aggregation.Output(s.Key, accumulator, bounds); results.One != nil || len(results.Many) > 0 {
		given = append(given, Result{Results: results, Time: time})
	}
	return given
}

// join combines the accumulators of panes in their order. If a function of the program panics, join returns a failed
// result.
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

package stream

import (
	"context"
	"time"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/timing"
)

// TTL is the time that the state of a key lives after the last message of the key, in whole milliseconds and at most 100 years: then it is
// gone, with all its timers, and the next message of the key begins with a new state. What counts is the time of arrival, or the messages'
// own where all sources give one. Timers and visits do not prolong it. Without TTL a state stays.
//
//	stream.MapState(clicks, "session", track, stream.TTL(30*time.Minute))
type TTL time.Duration

func (t TTL) ofState(step *declaration.Step) { step.State.TTLMs = int(time.Duration(t).Milliseconds()) }

func (t TTL) isValid() bool {
	d := time.Duration(t)
	return d >= time.Millisecond && d%time.Millisecond == 0 && d.Milliseconds() <= 3_153_600_000_000
}

// Timer is the argument of a timer's function besides the state.
type Timer = wa.Timer

// OnTimer adds a timer to the MapState that a stream comes from: its function sets it for the key of its message, with SetTimer or
// SetTimerAfter, and when that time has come handler runs once, and gives what MapState's function gives. Every change of the state is
// persisted; timer.DeleteState deletes it, with all timers of the key. An error or panic is a dead letter of that key; its state is as
// before, and the timer is gone. Each key has one timer of a name; handler may set it again.
//
// Time is that of arrival, or the messages' own where all sources give one: then a key's time is the latest one of its messages, and
// goes on with the clock while none come. Timers of a key run in the order of their times; those that are due run before a message.
//
// S and Out must be those of the MapState, and a name is used once (T207).
func OnTimer[S, Out any](s Stream[Out], name string, handler func(ctx context.Context, timer *Timer, state *S) (Out, error)) Stream[Out] {
	addTimer(s, "OnTimer", name, handler)
	return s
}

// OnTimerFlat is OnTimer for a FlatMapState.
func OnTimerFlat[S, Out any](s Stream[Out], name string, handler func(ctx context.Context, timer *Timer, state *S) ([]Out, error)) Stream[Out] {
	addTimer(s, "OnTimerFlat", name, handler)
	return s
}

// SetTimer sets a timer for the key of the message, or of the timer, that is at hand; ctx is what the function got, or derived from it. It
// replaces the one of that name. If the function fails, or a goroutine calls this after its return, nothing is set. A time that is
// over, or less than a millisecond away, is due at the key's next message or the next tick. A name that the step has no OnTimer for,
// and a time outside of the years 1 to 9999, fail (C529).
func SetTimer(ctx context.Context, name string, at time.Time) {
	timing.Of(ctx, "SetTimer").Set(name, at)
}

// SetTimerAfter is SetTimer for a time from Now on, which is not negative (C529).
func SetTimerAfter(ctx context.Context, name string, after time.Duration) {
	timing.Of(ctx, "SetTimerAfter").SetAfter(name, after)
}

// DeleteTimer deletes the timer of a name, if it is set; else it is like SetTimer.
func DeleteTimer(ctx context.Context, name string) { timing.Of(ctx, "DeleteTimer").Delete(name) }

// Now returns the time that counts in a function of a MapState or FlatMapState with TTL or timers: that of the message, or the one to which
// the timer was set. In other functions it panics.
func Now(ctx context.Context) time.Time { return time.UnixMilli(timing.Of(ctx, "Now").Now) }

func addTimer[S, Out, R any](s Stream[Out], method, name string, handler func(context.Context, *Timer, *S) (R, error)) {
	addFunction(s, method, name, handler == nil, "timer", func(step *declaration.Step, of any) (names *[]string, fits bool) {
		timed, fits := of.(interface{ Handlers() timers[S, R] })
		if fits && handler != nil {
			timed.Handlers()[name] = handler
		}
		return &step.Timers, fits
	})
}

// timers are the functions of a step's timers, by name.
type timers[S, R any] map[string]func(context.Context, *Timer, *S) (R, error)

// Handlers returns the functions of the step's timers.
func (c *stateful[In, S, Out]) Handlers() timers[S, Out] { return c.timers }

// Handlers returns the functions of the step's timers.
func (c *statefulMulti[In, S, Out]) Handlers() timers[S, []Out] { return c.timers }

// Fire runs the function of a timer.
func (c *stateful[In, S, Out]) Fire(at *timing.Changes, timer *Timer, state any) (any, bool) {
	ctx, call := c.begin()
	return call.With(c.results.settle(c.timers[timer.Name](at.Within(ctx), timer, state.(*S)))), true
}

// Fire runs the function of a timer.
func (c *statefulMulti[In, S, Out]) Fire(at *timing.Changes, timer *Timer, state any) ([]any, bool) {
	ctx, call := c.begin()
	return call.All(c.results.all(c.timers[timer.Name](at.Within(ctx), timer, state.(*S)))), true
}

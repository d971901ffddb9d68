package stream

import (
	"context"
	"time"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/timing"
)

// TTL is how long the state of a key lives after the last message of the key, in whole milliseconds and at most 100
// years. Then the state and all timers of the key are deleted, and the next message of the key gets a new state. Time
// is the arrival time, or the event time if all sources give event times. Timers and visits do not prolong the life of
// a state. Without a TTL, a state is never deleted for its age.
//
//	stream.MapState(clicks, "session", track, stream.TTL(30*time.Minute))
type TTL time.Duration

func (t TTL) ofState(step *declaration.Step) { step.State.TTLMs = int(time.Duration(t).Milliseconds()) }

// Timer is the argument that the function of a timer gets in addition to the state.
type Timer = wa.Timer

// OnTimer adds a timer with this name to the MapState that a stream comes from. The function of the MapState sets the
// timer for the key of its message with SetTimer or SetTimerAfter. When the time has come, handler runs once for this
// key, and its result continues like a result of the MapState. Every change of the state is persisted.
// timer.DeleteState deletes the state and all timers of the key. An error or panic makes a dead letter for the key: its
// state stays as it was, and the timer is deleted. Each key has at most one timer of a name. handler may set the timer
// again.
//
// Time is the arrival time, or the event time if all sources give event times. With event times, the time of a key is
// the latest time of its messages, and advances with the clock while no messages arrive. The timers of a key run in
// the order of their times. Timers that are due run before the next message.
//
// S and Out must be the types of the MapState, and each name can be used only once (T207).
func OnTimer[S, Out any](s Stream[Out], name string, handler func(ctx context.Context, timer *Timer, state *S) (Out, error)) Stream[Out] {
	addTimer(s, "OnTimer", name, handler)
	return s
}

// OnTimerFlat is OnTimer for a FlatMapState.
func OnTimerFlat[S, Out any](s Stream[Out], name string, handler func(ctx context.Context, timer *Timer, state *S) ([]Out, error)) Stream[Out] {
	addTimer(s, "OnTimerFlat", name, handler)
	return s
}

// SetTimer sets a timer for the key of the current message or timer. It replaces a timer of the same name. ctx is the
// context of the function or a context derived from it. Nothing is set if the function fails, or if a goroutine calls
// SetTimer after the function has returned. If the time is in the past, or less than a millisecond away, the timer is
// due at the next tick, or at the key's next message with an equal or later time. The call fails (C529) if the step has
// no OnTimer with this name or the time is outside the years 1 to 9999.
func SetTimer(ctx context.Context, name string, at time.Time) {
	timing.Of(ctx, "SetTimer").Set(name, at)
}

// SetTimerAfter is SetTimer with a duration from Now. The duration must not be negative (C529).
func SetTimerAfter(ctx context.Context, name string, after time.Duration) {
	timing.Of(ctx, "SetTimerAfter").SetAfter(name, after)
}

// DeleteTimer deletes a timer if it is set. The rules for ctx and name are those of SetTimer.
func DeleteTimer(ctx context.Context, name string) { timing.Of(ctx, "DeleteTimer").Delete(name) }

// Now returns the time of the current message, or the time to which the current timer was set. Call it in functions of
// a MapState or FlatMapState that has a TTL or timers; in other functions Now panics. ctx is the context of the
// function or a context derived from it.
func Now(ctx context.Context) time.Time { return time.UnixMilli(timing.Of(ctx, "Now").Now) }

// addTimer adds a timer to the step that a stream comes from. R is the type of the handler's result: Out or []Out.
func addTimer[S, Out, R any](s Stream[Out], method, name string, handler func(context.Context, *Timer, *S) (R, error)) {
	addFunction(s, method, name, handler == nil, "timer", func(step *declaration.Step) (names *[]string, fits bool) {
		timed, fits := step.Stateful.(interface{ Handlers() timers[S, R] })
		if fits && handler != nil {
			timed.Handlers()[name] = handler
		}
		return &step.Timers, fits
	})
}

// timers maps names of timers to their functions.
type timers[S, R any] map[string]func(context.Context, *Timer, *S) (R, error)

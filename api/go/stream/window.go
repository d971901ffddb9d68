package stream

import (
	"context"
	"slices"
	"strconv"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/topology"
)

// Aggregation has the functions with which a window step computes the result of each window from its messages. Except
// for Update, these functions must not change their arguments. All functions must depend on their arguments alone.
type Aggregation[In, Acc, Out any] struct {
	// Name names the step.
	Name string
	// Initial returns the accumulator of an empty window.
	Initial func() Acc
	// Update adds a message to an accumulator and returns the accumulator. It may change the accumulator in place.
	Update func(in In, accumulator Acc) Acc
	// Combine joins the accumulators of earlier and later messages into a new one. Initial() must be neutral: if it is
	// joined with an accumulator, the result equals this accumulator.
	Combine func(earlier, later Acc) Acc
	// Output returns the result of a window. The error ErrSkip means that the window has no result.
	Output func(key string, accumulator Acc) (Out, error)
	// OutputTo replaces Output in an aggregation that emits to outputs (see Output.Emit) or calls WindowBounds.
	OutputTo func(ctx context.Context, key string, accumulator Acc) (Out, error)
	// Outputs are the outputs to which OutputTo emits.
	Outputs []Outputs
}

// boundsOf is the type of the key under which the context of OutputTo contains the bounds of the window.
type boundsOf struct{}

// WindowBounds returns the start and end of the current window to the function OutputTo of an Aggregation. ctx is the
// function's context. The window includes start and excludes end. For a late message that is emitted alone, and for a
// CountWindow, start and end are the times of the first and the last message. In other functions both times are zero.
func WindowBounds(ctx context.Context) (start, end time.Time) {
	bounds, is := ctx.Value(boundsOf{}).(declaration.Bounds)
	if !is {
		return start, end
	}
	return time.UnixMilli(bounds.StartMs), time.UnixMilli(bounds.EndMs)
}

// Late is the policy for a message that is older than all open windows.
type Late string

// The policies for late messages. Drop discards and counts the message. FirePerMessage emits a window that has only
// this message, and whose start equals its end. PlaceInOldestWindow adds the message to the oldest open window.
const (
	Drop                Late = "drop"
	FirePerMessage      Late = "fire_per_message"
	PlaceInOldestWindow Late = "place_in_oldest_window"
)

// Range describes windows of time of a fixed length, which may overlap. All durations are in whole milliseconds, at most
// 365 days.
type Range struct {
	// Length is the length of a window.
	Length time.Duration
	// Slide is the time from the start of one window to the start of the next, at most Length. 0 means Length. A key
	// can have at most 100,000 open windows: (Length + Delay) / Slide.
	Slide time.Duration
	// Delay is how long a window waits for late messages. It is rounded up to a multiple of Slide.
	Delay time.Duration
	// Late is the policy for late messages. The default is Drop.
	Late Late
}

// Session describes windows that end when no message arrives for the time Gap. All durations are in whole milliseconds,
// at most 365 days.
type Session struct {
	// Gap is how long a session waits for its next message. A message that arrives exactly after Gap begins another
	// session.
	Gap time.Duration
	// Delay is how long a session waits for late messages after its end. A key can have at most 100,000 open sessions:
	// (Gap + Delay) / Gap.
	Delay time.Duration
	// Late is the policy for late messages. The default is Drop.
	Late Late
}

// Count describes windows of a fixed number of messages.
type Count struct {
	// Size is the number of messages in a window, at most 1,000,000,000.
	Size int
	// Flush is how long a key may be without a message before an incomplete window is emitted, in whole milliseconds, at
	// most 365 days. 0 means 5 s.
	Flush time.Duration
}

// RangeWindow adds a step with windows of time. It returns the stream of results, one for each key and window. The
// first window of a key begins with the key's first message. Time is the arrival time, or the event time if all sources
// give event times. A window without messages between other windows also has a result. Impossible durations (T207) and
// too many open windows (T271) are reported. Messages need keys as for MapState. If Output panics, the result of the
// window is lost (C517).
//
// Source: Wallaroo 0.6, range_windows.
func RangeWindow[In, Acc, Out any](s Stream[In], window Range, aggregation Aggregation[In, Acc, Out]) Stream[Out] {
	if window.Slide == 0 {
		window.Slide = window.Length
	}
	if window.Late == "" {
		window.Late = Drop
	}
	declared := &topology.RangeWindow{
		RangeMs: int(window.Length.Milliseconds()), SlideMs: int(window.Slide.Milliseconds()),
		DelayMs: int(window.Delay.Milliseconds()), Late: string(window.Late), Time: timeOf(s),
	}
	next, step := addWindow(s, declared, aggregation)
	checkTimed(s.application, "RangeWindow", window.Late, declared.RangeMs+declared.DelayMs, declared.SlideMs, step)
	usable := areUsable(window.Length, window.Slide, window.Delay)
	if !usable || declared.RangeMs < 1 || declared.SlideMs < 1 || declared.SlideMs > declared.RangeMs || declared.DelayMs < 0 {
		s.application.wrong("RangeWindow", "window", window.Length.String()+", "+window.Slide.String()+", "+window.Delay.String(),
			"whole milliseconds with 0 < Slide <= Length and 0 <= Delay, at most 365 days", step.Path, step.Place)
	}
	return next
}

// SessionWindow adds a step with sessions: windows that end after a pause. It returns the stream of results, one for
// each key and session. If a message is within the gap of two open sessions, Combine joins their accumulators, and
// Update adds the message to the joined one. Time is as for RangeWindow. Impossible durations (T207) and too many open
// sessions (T271) are reported. Messages need keys as for MapState.
func SessionWindow[In, Acc, Out any](s Stream[In], window Session, aggregation Aggregation[In, Acc, Out]) Stream[Out] {
	if window.Late == "" {
		window.Late = Drop
	}
	declared := &topology.SessionWindow{
		GapMs: int(window.Gap.Milliseconds()), DelayMs: int(window.Delay.Milliseconds()), Late: string(window.Late), Time: timeOf(s),
	}
	next, step := addWindow(s, declared, aggregation)
	checkTimed(s.application, "SessionWindow", window.Late, declared.GapMs+declared.DelayMs, declared.GapMs, step)
	if !areUsable(window.Gap, window.Delay) || declared.GapMs < 1 || declared.DelayMs < 0 {
		s.application.wrong("SessionWindow", "window", window.Gap.String()+", "+window.Delay.String(),
			"whole milliseconds with 0 < Gap and 0 <= Delay, at most 365 days", step.Path, step.Place)
	}
	return next
}

// timeOf returns the kind of time that windows of a stream use: topology.EventTime or topology.IngestTime (arrival
// time).
func timeOf[T any](s Stream[T]) string {
	if s.timed {
		return topology.EventTime
	}
	return topology.IngestTime
}

// The limits of windows: maxOpenWindows of one key, maxCount messages in a window, and the duration longest. The schema of
// topologies has the last two as well.
const (
	maxOpenWindows = 100_000
	maxCount       = 1_000_000_000
	longest        = 365 * 24 * time.Hour
)

// areUsable reports whether all durations are in whole milliseconds and not longer than the limit.
func areUsable(durations ...time.Duration) bool {
	return !slices.ContainsFunc(durations, func(d time.Duration) bool { return d%time.Millisecond != 0 || d > longest })
}

// checkTimed reports faults of a window of time: an unknown policy for late messages, and more than maxOpenWindows open
// windows of a key. The number of open windows is wholeMs / stepMs, rounded up.
func checkTimed(app *Application, function string, late Late, wholeMs, stepMs int, step *declaration.Step) {
	if open := (wholeMs + stepMs - 1) / max(stepMs, 1); open > maxOpenWindows && stepMs > 0 {
		app.declared.Report(diagnostic.Of("T271", "count", open, "limit", maxOpenWindows), declaration.Pointer(step.Path), step.Place)
	}
	if late != Drop && late != FirePerMessage && late != PlaceInOldestWindow {
		app.wrong(function, "window", string(late), "Drop, FirePerMessage or PlaceInOldestWindow", step.Path, step.Place)
	}
}

// CountWindow adds a step with windows of a fixed number of messages. It returns the stream of results: a key has one
// for every Size messages. A Size or Flush outside of its limits is reported (T207).
//
// Source: Wallaroo 0.6, count_windows.
func CountWindow[In, Acc, Out any](s Stream[In], window Count, aggregation Aggregation[In, Acc, Out]) Stream[Out] {
	if window.Flush == 0 {
		window.Flush = 5 * time.Second
	}
	next, step := addWindow(s, &topology.CountWindow{Count: window.Size, FlushMs: int(window.Flush.Milliseconds())}, aggregation)
	if window.Size < 1 || window.Size > maxCount || window.Flush < time.Millisecond || !areUsable(window.Flush) {
		s.application.wrong("CountWindow", "window", strconv.Itoa(window.Size)+" messages, "+window.Flush.String(),
			"1 to 1000000000 messages and one or more whole milliseconds, at most 365 days", step.Path, step.Place)
	}
	return next
}

// addWindow adds a window step and returns it with the stream of its results.
func addWindow[In, Acc, Out any](s Stream[In], window topology.Window, a Aggregation[In, Acc, Out]) (Stream[Out], *declaration.Step) {
	state := &declaration.State{Name: s.application.stateName(a.Name), Builder: accumulators[Acc]{a.Initial}, ByKey: true}
	step := &declaration.Step{Name: a.Name, Kind: declaration.Window, State: state, Window: window,
		Aggregation: &aggregation[In, Acc, Out]{emitter{emits: len(a.Outputs) > 0}, a, resultsOf[Out]()}, Outputs: namesOf(a.Outputs)}
	if a.Initial == nil || a.Update == nil || a.Combine == nil || (a.Output == nil) == (a.OutputTo == nil) {
		next := add[In, Out](s, step, a)
		s.application.wrong("Aggregation", "aggregation", "without one of its functions", "Initial, Update, Combine, and Output or OutputTo",
			step.Path, step.Place)
		return next, step
	}
	learn[Acc]()
	next := withState[In, Out](s, step, a.Update)
	return next, step
}

// accumulators builds the initial accumulators of a window step. The declaration builds one, to learn its type and
// whether it is serializable.
type accumulators[Acc any] struct{ initial func() Acc }

func (a accumulators[Acc]) Build() any { return a.initial() }

// aggregation is a window step. It calls the functions of an Aggregation.
type aggregation[In, Acc, Out any] struct {
	emitter
	functions Aggregation[In, Acc, Out]
	results   results[Out]
}

func (a *aggregation[In, Acc, Out]) Within(ctx context.Context) any {
	bound := *a
	bound.around = ctx
	return &bound
}

func (a *aggregation[In, Acc, Out]) InitialAccumulator() any { return a.functions.Initial() }

func (a *aggregation[In, Acc, Out]) Update(input, accumulator any) any {
	return a.functions.Update(input.(In), accumulator.(Acc))
}

func (a *aggregation[In, Acc, Out]) Combine(first, second any) any {
	return a.functions.Combine(first.(Acc), second.(Acc))
}

func (a *aggregation[In, Acc, Out]) Output(key []byte, accumulator any, bounds declaration.Bounds) emission.Results {
	if a.functions.OutputTo == nil {
		return a.results.settle(a.functions.Output(string(key), accumulator.(Acc)))
	}
	ctx, call := a.begin()
	ctx = context.WithValue(ctx, boundsOf{}, bounds)
	return call.With(a.results.settle(a.functions.OutputTo(ctx, string(key), accumulator.(Acc))))
}

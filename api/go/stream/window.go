package stream

import (
	"context"
	"strconv"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// Aggregation is a window's function over its messages. All functions but Update must leave their arguments as they are, and
// depend on it alone.
type Aggregation[In, Acc, Out any] struct {
	// Name names the step.
	Name string
	// Initial returns the accumulator of no messages.
	Initial func() Acc
	// Update adds a message to an accumulator, which it may change, and returns it.
	Update func(in In, accumulator Acc) Acc
	// Combine joins the accumulators of earlier and later messages into another one. Initial() changes nothing.
	Combine func(earlier, later Acc) Acc
	// Output makes the result of a window; the error ErrSkip means that it has none.
	Output func(key string, accumulator Acc) (Out, error)
	// OutputTo is in the place of Output where it emits to outputs, see Output.Emit, or asks for WindowBounds.
	OutputTo func(ctx context.Context, key string, accumulator Acc) (Out, error)
	// Outputs are those to which OutputTo emits.
	Outputs []Outputs
}

type boundsOf struct{}

// WindowBounds returns when the window of an OutputTo begins and ends: it holds the times from start to before end. Of a late message
// that is emitted alone, and of a CountWindow, both are times of messages, the first and the last one. In other functions both are zero.
func WindowBounds(ctx context.Context) (start, end time.Time) {
	bounds, is := ctx.Value(boundsOf{}).(declaration.Bounds)
	if !is {
		return start, end
	}
	return time.UnixMilli(bounds.StartMs), time.UnixMilli(bounds.EndMs)
}

// Late is the policy for a message that is older than all open windows.
type Late string

// The policies for late messages: leave them out (the run counts them), emit a window of that message alone, whose bounds are equal,
// or add it to the oldest open window.
const (
	Drop                Late = "drop"
	FirePerMessage      Late = "fire_per_message"
	PlaceInOldestWindow Late = "place_in_oldest_window"
)

// Range describes windows over a span of time, in whole milliseconds.
type Range struct {
	// Length is how long a window is.
	Length time.Duration
	// Slide is the time from the begin of one window to that of the next, at most Length. 0: Length. At most 100,000 windows of a key
	// are open at once: (Length + Delay) / Slide.
	Slide time.Duration
	// Delay is how long a window waits for late messages; it is rounded up to a multiple of Slide.
	Delay time.Duration
	// Late is Drop unless it says otherwise.
	Late Late
}

// Session describes windows of messages without a longer gap between them, in whole milliseconds.
type Session struct {
	// Gap is how long a session waits for its next message: one that comes exactly then begins another session.
	Gap time.Duration
	// Delay is how long a session that is over waits for late messages. At most 100,000 sessions of a key can be open at once:
	// (Gap + Delay) / Gap.
	Delay time.Duration
	// Late is Drop unless it says otherwise.
	Late Late
}

// Count describes windows of a number of messages.
type Count struct {
	// Size is how many messages make a window.
	Size int
	// Flush is how long a key may be without a message until a window that is not full is emitted. 0: 5 s.
	Flush time.Duration
}

// RangeWindow gives, for each key, a result per window of time. Windows begin with a key's first message; time is that of arrival, or
// the messages' own where all sources give one. Windows without messages between others have a result too. Times that cannot be
// are found (T207), so are too many open windows (T271); messages need keys as for MapState. A panic of Output costs that result
// (C517).
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
	whole := window.Length%time.Millisecond == 0 && window.Slide%time.Millisecond == 0 && window.Delay%time.Millisecond == 0
	if !whole || declared.RangeMs < 1 || declared.SlideMs < 1 || declared.SlideMs > declared.RangeMs || declared.DelayMs < 0 {
		s.application.wrong("RangeWindow", "window", window.Length.String()+", "+window.Slide.String()+", "+window.Delay.String(),
			"whole milliseconds with 0 < Slide <= Length and 0 <= Delay", step.Path, step.Place)
	}
	return next
}

// SessionWindow gives, for each key, a result per session. Where a message falls between two sessions that are open, with less than the
// gap to both, Combine joins them, and the accumulator that it returns is updated. Time is as for RangeWindow. Times that cannot be are
// found (T207), so are too many open sessions (T271); messages need keys as for MapState.
func SessionWindow[In, Acc, Out any](s Stream[In], window Session, aggregation Aggregation[In, Acc, Out]) Stream[Out] {
	if window.Late == "" {
		window.Late = Drop
	}
	declared := &topology.SessionWindow{
		GapMs: int(window.Gap.Milliseconds()), DelayMs: int(window.Delay.Milliseconds()), Late: string(window.Late), Time: timeOf(s),
	}
	next, step := addWindow(s, declared, aggregation)
	checkTimed(s.application, "SessionWindow", window.Late, declared.GapMs+declared.DelayMs, declared.GapMs, step)
	if window.Gap%time.Millisecond != 0 || window.Delay%time.Millisecond != 0 || declared.GapMs < 1 || declared.DelayMs < 0 {
		s.application.wrong("SessionWindow", "window", window.Gap.String()+", "+window.Delay.String(),
			"whole milliseconds with 0 < Gap and 0 <= Delay", step.Path, step.Place)
	}
	return next
}

// timeOf returns which time counts for the windows of a stream.
func timeOf[T any](s Stream[T]) string {
	if s.timed {
		return topology.EventTime
	}
	return topology.IngestTime
}

// maxOpenWindows is the number of windows of one key that can be open at once.
const maxOpenWindows = 100_000

// checkTimed finds an unknown policy, and too many windows that would be open at once: one for each stepMs of wholeMs.
func checkTimed(app *Application, function string, late Late, wholeMs, stepMs int, step *declaration.Step) {
	if open := (wholeMs + stepMs - 1) / max(stepMs, 1); open > maxOpenWindows && stepMs > 0 {
		app.declared.Report(diagnostic.Of("T271", "count", open, "limit", maxOpenWindows), declaration.Pointer(step.Path), step.Place)
	}
	if late != Drop && late != FirePerMessage && late != PlaceInOldestWindow {
		app.wrong(function, "window", string(late), "Drop, FirePerMessage or PlaceInOldestWindow", step.Path, step.Place)
	}
}

// CountWindow gives, for each key, a result for every so many messages. Less than one message or a millisecond is found (T207).
//
// Source: Wallaroo 0.6, count_windows.
func CountWindow[In, Acc, Out any](s Stream[In], window Count, aggregation Aggregation[In, Acc, Out]) Stream[Out] {
	if window.Flush == 0 {
		window.Flush = 5 * time.Second
	}
	next, step := addWindow(s, &topology.CountWindow{Count: window.Size, FlushMs: int(window.Flush.Milliseconds())}, aggregation)
	if window.Size < 1 || window.Flush < time.Millisecond {
		s.application.wrong("CountWindow", "window", strconv.Itoa(window.Size)+" messages, "+window.Flush.String(),
			"at least one message and a millisecond", step.Path, step.Place)
	}
	return next
}

func addWindow[In, Acc, Out any](s Stream[In], window topology.Window, a Aggregation[In, Acc, Out]) (Stream[Out], *declaration.Step) {
	state := &declaration.State{Name: s.application.stateName(a.Name), Builder: accumulators[Acc]{a.Initial}, ByKey: true}
	step := &declaration.Step{Name: a.Name, Kind: declaration.Window, State: state, Window: window,
		Aggregation: &aggregation[In, Acc, Out]{nameOf(a.Name, a.Outputs), a, resultsOf[Out]()}, Outputs: namesOf(a.Outputs)}
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

// accumulators makes the accumulators of a window, for its state's class and to see whether they have bytes.
type accumulators[Acc any] struct{ initial func() Acc }

func (a accumulators[Acc]) Build() any { return a.initial() }

type aggregation[In, Acc, Out any] struct {
	named
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

func (a *aggregation[In, Acc, Out]) Output(key []byte, accumulator any, bounds declaration.Bounds) any {
	if a.functions.OutputTo == nil {
		return a.results.settle(a.functions.Output(string(key), accumulator.(Acc)))
	}
	ctx, call := a.begin()
	ctx = context.WithValue(ctx, boundsOf{}, bounds)
	return call.With(a.results.settle(a.functions.OutputTo(ctx, string(key), accumulator.(Acc))))
}

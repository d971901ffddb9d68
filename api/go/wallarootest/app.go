// Package wallarootest runs an application inside `go test`. The steps run in the process of the test, with the code
// that a worker uses, so breakpoints and prints in them work. Spark, a network and other processes are not needed.
//
//	func TestCount(t *testing.T) {
//		app := wallarootest.New(t, setup(nil))
//		app.Send("Lines", "a b", "a")
//		wallarootest.Equal(t, app.Lines("Counts"), []string{"a 1", "b 1", "a 2"})
//	}
//
// # What a test can rely on
//
// Each call of Send is one micro-batch. When Send returns, all effects of its messages have happened. Outputs are in
// the order of their source messages. A cluster only promises an order within each key. With Vary, a test finds out
// whether the application, or the test itself, depends on more than that.
//
// The rules are strict. States are written and read back between micro-batches, as after a restart of a worker. A
// message that changes a state without persisting it becomes a dead letter (C510). A test with dead letters fails,
// unless it calls DeadLetters. Time begins at Start, and only Advance moves it.
//
// Steps of other programs (wallarooapi.OtherProgram) cannot run in a test: New reports them (P303).
package wallarootest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/known"
	"wallarooapi/internal/memory"
)

// Start is the time of an application when its test begins. It is the same as in wallaroo.testing of Python.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// T has the methods of *testing.T and *testing.B that this package uses.
type T interface {
	Helper()
	Cleanup(function func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Application is an *application.Application or a *stream.Application.
type Application interface {
	// ToJson ends the declaration and returns the topology document.
	ToJson() string
}

// App is an application under test. It is not safe for concurrent use.
type App struct {
	t        T
	declared *declaration.Application
	engine   *memory.Engine
	journal  memory.Journal
	draw     *rand.Rand // nil without Vary
	now      time.Time
	pending  [][]byte // frames of input that are not processed yet
	outputs  map[string][]output
	captured *captured
	letters  letters

	generated map[string]*generated // progress of the generators by the path of the source
	offsets   map[string]int64      // offset of the next record, by the path of the source
}

// Option is an option of New, such as Vary.
type Option func(*App)

// Vary varies everything that a cluster does not promise, at random with this seed. It varies the size of micro-batches
// and frames, the number of buckets, the order in which buckets run and emit output, and the times at which states are
// written and read back. An application that depends on none of these has the same output for every seed, except for
// the order among keys.
func Vary(seed uint64) Option {
	return func(a *App) { a.draw = rand.New(rand.NewPCG(seed, 0)) }
}

// New starts an application for a test. If the declaration is wrong or has steps of other programs, the test fails with
// all findings.
func New(t T, application Application, options ...Option) *App {
	t.Helper()
	declared := declaration.Revealed(application)
	if declared == nil {
		t.Fatalf("wallarootest: %T is no application; pass an *application.Application or a *stream.Application", application)
		return nil
	}
	return start(t, declared, options)
}

// NewJSON is New for setups that return the text of ToJson, as Wallaroo's ApplicationSetup does.
//
// Source: Wallaroo 0.4 and 0.5, ApplicationSetup.
func NewJSON(t T, text string, options ...Option) *App {
	t.Helper()
	result, known := declaration.Lookup(text)
	switch {
	case !known:
		t.Fatalf("wallarootest: %v", diagnostic.NoApplication("the setup", "it returned "+diagnostic.Shown(text)))
	case len(result.Found) > 0:
		t.Fatalf("wallarootest: the application is not declared well\n%v", diagnostic.Error(result.Found))
	default:
		return start(t, result.Application, options)
	}
	return nil
}

// start starts a declared application. It makes the test fail if this is not possible.
func start(t T, declared *declaration.Application, options []Option) *App {
	t.Helper()
	a := &App{
		t: t, now: Start, outputs: map[string][]output{}, captured: &captured{values: map[uint64]any{}},
		generated: map[string]*generated{}, offsets: map[string]int64{},
	}
	for _, option := range options {
		option(a)
	}
	known.RegisterMain()
	settings := memory.Plain()
	if a.draw != nil {
		settings = memory.Drawn(a.draw)
	}
	a.declared = a.captured.capturing(declared)
	engine, found, err := memory.New(a.declared, settings)
	if len(found) > 0 {
		err = fmt.Errorf("the application cannot be run\n%w", diagnostic.Error(found))
	}
	if err != nil {
		t.Fatalf("wallarootest: %v", err)
		return nil
	}
	a.engine = engine
	t.Cleanup(a.close)
	return a
}

// take adds frames to the pending input and processes all of it. With Vary, it may leave all frames for a later
// micro-batch.
func (a *App) take(frames ...[]byte) {
	a.t.Helper()
	a.pending = append(a.pending, frames...)
	if a.draw == nil || a.draw.IntN(2) == 0 {
		a.flush()
	}
}

// flush processes the pending frames in micro-batches.
func (a *App) flush() {
	a.t.Helper()
	for len(a.pending) > 0 {
		size := memory.Batch(a.pending)
		if a.draw != nil {
			size = 1 + a.draw.IntN(size)
		}
		batch := a.pending[:size]
		a.pending = a.pending[size:]
		a.run(batch)
	}
}

// run processes one micro-batch, and publishes its output unless one of its dead letters stops the application.
func (a *App) run(batch [][]byte) {
	a.t.Helper()
	left, err := a.engine.Run(batch)
	var messages []memory.Message
	if err == nil {
		messages, err = memory.Messages(left)
	}
	if err != nil {
		a.pending = nil
		a.t.Fatalf("wallarootest: the application cannot go on; %v", err)
		return
	}
	if a.draw == nil {
		slices.SortStableFunc(messages, inOrder)
	}
	if a.bury(messages) {
		a.publish(messages)
	}
}

// close runs at the end of a test. It processes pending frames, and makes the test fail if the test has ignored dead
// letters or the end of its application.
func (a *App) close() {
	a.t.Helper()
	if len(a.pending) > 0 && !a.t.Failed() {
		a.flush()
	}
	a.letters.close(a.t)
}

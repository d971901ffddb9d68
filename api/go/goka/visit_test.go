package goka

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
)

func visiting() *GroupGraph {
	graph, _ := drawn(false)
	return DefineGroup("drawn", append(graph.AllEdges(), Visitor("steps", perform))...)
}

// visit runs a visit on the in-memory engine, as VisitAll does in a run, and returns the number of keys for which the
// visitor ran.
func (e *engine) visit(name string, meta any, forgets bool) int64 {
	token, open, metadata := e.group.visits.begin(meta)
	if forgets { // as a process that has ended
		e.group.visits.end(token)
	}
	keys := int64(e.app.Visit(name, metadata))
	e.drain()
	return keys - int64(len(open.without))
}

func TestDrawnVisitsAsGoka(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		arrivals, meta := draw(random), drawSteps(random, 1)
		graph := visiting()
		var wantedCount, count int64
		wanted := onGokaThen(t, arrivals, graph, nil, func(processor *Processor, kafka *tester.Tester) {
			visited, err := processor.VisitAllWithStats(context.Background(), "steps", meta)
			if err != nil {
				t.Fatal(err)
			}
			wantedCount = visited
			kafka.Catchup()
		})
		got := onEngineThen(t, arrivals, visiting(), nil, func(e *engine) { count = e.visit("steps", meta, false) })
		if difference := differ(wanted, got); difference != "" || wantedCount != count {
			t.Fatalf("seed %d: %d keys, not %d; %+v\n%s", seed, count, wantedCount, meta, difference)
		}
	}
}

func TestMetaOutlivesAProcess(t *testing.T) {
	for _, meta := range []any{nil, "text", int64(-3), []byte("bytes"), true, 1.5} {
		var got []any
		graph := counted(Visitor("v", func(ctx Context, message any) { got = append(got, message, ctx.Key(), ctx.Topic()) }))
		graph.callbacks["in"] = func(ctx Context, _ any) { ctx.SetValue(int64(1)) }
		e := newEngine(t, graph, nil)
		e.app.Send("in", record("in", "k", []byte("x")))
		e.visit("v", meta, true)
		if want := []any{meta, "k", Stream("v")}; !equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func equal(a, b []any) bool {
	shown := func(all []any) string { data, _ := script{}.Encode(all); return string(data) }
	return shown(a) == shown(b)
}

func TestAVisitOfTheCommandHasText(t *testing.T) {
	var got []any
	graph := counted(Visitor("v", func(_ Context, message any) { got = append(got, message) }))
	graph.callbacks["in"] = func(ctx Context, _ any) { ctx.SetValue(int64(1)) }
	e := newEngine(t, graph, nil)
	e.app.Send("in", record("in", "k", []byte("x")))
	if keys := e.app.Visit("v", []byte("hello")); keys != 1 || !equal(got, []any{"hello"}) {
		t.Errorf("%d keys, %v", keys, got)
	}
}

func TestVisitsThatCannotBe(t *testing.T) {
	none := func(Context, any) {}
	state := NewSignal(ProcStateIdle, ProcStateRunning)
	stateful := &Processor{graph: counted(Visitor("v", none)), state: state}
	stateless := &Processor{graph: DefineGroup("s", Input("in", new(codec.String), none)), state: state}
	if _, err := stateful.VisitAllWithStats(context.Background(), "w", nil); err == nil || !strings.HasPrefix(err.Error(), "unconfigured visit callback") {
		t.Error(err)
	}
	if err := stateless.VisitAll(context.Background(), "v", nil); err == nil || err.Error() != "cannot visit values in stateless processor" {
		t.Error(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := stateful.VisitAll(ended, "v", nil); !errors.Is(err, ErrVisitAborted) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAVisitWaitsUntilTheProcessorRuns checks a call of VisitAll right after Run was called in a goroutine.
func TestAVisitWaitsUntilTheProcessorRuns(t *testing.T) {
	script := filepath.Join(t.TempDir(), "wallaroo")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho '{\"keys\": 3}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WALLAROO", script)
	for _, runs := range []bool{true, false} {
		processor := onTester(t, tester.New(t), named("a", Visitor("v", func(Context, any) {})))
		answer := make(chan error, 1)
		go func() { answer <- processor.VisitAll(context.Background(), "v", nil) }()
		select {
		case err := <-answer:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(50 * time.Millisecond): // only time shows that it waits
		}
		if runs {
			processor.state.SetState(ProcStateRunning)
		} else {
			close(processor.done)
		}
		if err := <-answer; errors.Is(err, ErrVisitAborted) == runs {
			t.Errorf("runs is %v: %v", runs, err)
		}
	}
}

// TestAVisitThatTheEndOfTheRunInterrupts checks that VisitAll returns ErrVisitAborted, however the run ended.
func TestAVisitThatTheEndOfTheRunInterrupts(t *testing.T) {
	for code, aborted := range map[string]bool{"R733": true, "R698": false} {
		script := filepath.Join(t.TempDir(), "wallaroo")
		text := "#!/bin/sh\necho '[{\"code\": \"" + code + "\", \"message\": \"the run has ended\"}]' >&2\nexit 1\n"
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		processor := onTester(t, tester.New(t), named("a", Visitor("v", func(Context, any) {})))
		processor.state.SetState(ProcStateRunning)
		t.Setenv("WALLAROO", script)
		err := processor.VisitAll(context.Background(), "v", nil)
		if err == nil || errors.Is(err, ErrVisitAborted) != aborted || !strings.Contains(err.Error(), "the run has ended") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

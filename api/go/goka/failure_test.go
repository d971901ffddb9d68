package goka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lovoo/goka/storage"
	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/workermain"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// misuses are callbacks that fail, each with a description.
var misuses = map[string]func(ctx Context, message any){
	"an empty topic":         func(ctx Context, _ any) { ctx.Emit("", "k", "v") },
	"the loop topic":         func(ctx Context, _ any) { ctx.Emit("bad-loop", "k", "v") },
	"the table topic":        func(ctx Context, _ any) { ctx.Emit("bad-table", "k", "v") },
	"an undeclared topic":    func(ctx Context, _ any) { ctx.Emit("other", "k", "v") },
	"another type":           func(ctx Context, _ any) { ctx.Emit("out", "k", 1) },
	"nil in the table":       func(ctx Context, _ any) { ctx.SetValue(nil) },
	"a wrong value":          func(ctx Context, _ any) { ctx.SetValue("one") },
	"no loop":                func(ctx Context, _ any) { ctx.Loopback("k", "v") },
	"an undeclared join":     func(ctx Context, _ any) { ctx.Join("other") },
	"an undeclared lookup":   func(ctx Context, _ any) { ctx.Lookup("other", "k") },
	"Fail":                   func(ctx Context, _ any) { ctx.Fail(errors.New("enough")) },
	"a panic":                func(Context, any) { panic("out of order") },
	"a panic of the Go kind": func(_ Context, message any) { _ = message.(int) },
	"a deferred error": func(ctx Context, _ any) {
		first, second := ctx.DeferCommit(), ctx.DeferCommit()
		first(nil)
		go second(errors.New("the disk is full"))
		first(errors.New("only the first call counts"))
	},
	"a canceled request of the program": func(ctx Context, _ any) {
		ctx.DeferCommit()(fmt.Errorf("get: %w", context.Canceled))
	},
}

func bad(callback ProcessCallback, edges ...Edge) *GroupGraph {
	return DefineGroup("bad", append(edges, Input("in", new(codec.String), callback), Output("out", new(codec.String)))...)
}

func failureOnGoka(t *testing.T, graph *GroupGraph, message any) string {
	kafka := tester.New(t)
	processor, err := NewProcessor(nil, graph, WithTester(kafka))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(context.Background()) }()
	_ = processor.WaitForReady()
	kafka.Consume("in", "key", message)
	return firstLine((<-ended).Error())
}

// firstLine returns the text of a failure without the list of errors that contains it, and without the stack.
func firstLine(text string) string {
	const begin = "error processing message"
	_, text, _ = strings.Cut(text, begin)
	line, _, _ := strings.Cut(text, "\n")
	return begin + line
}

func failureOnEngine(t *testing.T, graph *GroupGraph, message string) string {
	e := newEngine(t, graph, nil)
	e.app.Send("in", stream.KafkaRecord{Topic: "in", Key: []byte("key"), Value: []byte(message), Time: wallarootest.Start})
	failed := e.group.failed.get()
	if stopped := e.app.Failure(); failed == nil || stopped == nil {
		t.Fatalf("%v, and %v", failed, stopped)
	}
	line, stack, _ := strings.Cut(failed.Error(), "\n")
	if strings.Contains(line, "panic in callback") && strings.Contains(stack, "context.go") {
		t.Errorf("the stack has lines of this package: %s", stack)
	}
	return line
}

func TestFailuresHaveGokasTexts(t *testing.T) {
	for name, callback := range misuses {
		for _, edges := range [][]Edge{{Persist(new(codec.Int64))}, nil} {
			wanted, got := failureOnGoka(t, bad(callback, edges...), "v"), failureOnEngine(t, bad(callback, edges...), "v")
			if wanted != got {
				t.Errorf("%s: %q\n  not %q", name, got, wanted)
			}
		}
	}
}

func TestAMessageThatCannotBeDecoded(t *testing.T) {
	graph := func() *GroupGraph {
		return DefineGroup("bad", Input("in", new(codec.Int64), func(Context, any) {}), Persist(new(codec.Int64)))
	}
	got := failureOnEngine(t, graph(), "seven")
	const wanted = "error processing message (partition=0): error decoding message for key key from in/0: "
	if !strings.HasPrefix(got, wanted) {
		t.Errorf("%q", got)
	}
}

// panicking is a codec whose Decode panics.
type panicking struct{ Codec }

func (panicking) Decode([]byte) (any, error) { panic("no such format") }

// TestPanicsOutsideOfCallbacks checks that Run returns the panic of a codec or an update callback like that of a
// callback.
func TestPanicsOutsideOfCallbacks(t *testing.T) {
	none := func(Context, any) {}
	update := WithUpdateCallback(func(UpdateContext, storage.Storage, string, []byte) error { panic("no such format") })
	for _, each := range []struct {
		topic string
		graph *GroupGraph
	}{
		{"in", DefineGroup("bad", Input("in", panicking{}, none))},
		{"in", DefineGroup("bad", Input("in", panicking{}, none), Persist(new(codec.Int64)))},
		{"users", DefineGroup("bad", Input("in", new(codec.String), none), Join("users", new(codec.String)))},
	} {
		e := newEngine(t, each.graph, []ProcessorOption{update})
		e.app.Send(each.topic, record(each.topic, "k", []byte("v")))
		failed := e.group.failed.get()
		if failed == nil || e.app.Failure() == nil {
			t.Fatalf("%s: %v, and %v", each.topic, failed, e.app.Failure())
		}
		if line, _, _ := strings.Cut(failed.Error(), "\n"); line != "error processing message (partition=0): panic in callback: no such format" {
			t.Error(line)
		}
	}
}

// TestTheEndOfARunIsNoFailure checks that Run does not return the failure of a message that waited for its goroutines
// when the run ended.
func TestTheEndOfARunIsNoFailure(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	late, done := context.WithTimeout(context.Background(), 0)
	defer done()
	for _, ended := range []context.Context{canceled, late} {
		e := newEngine(t, bad(func(ctx Context, _ any) { ctx.DeferCommit() }), nil)
		e.group.context = func() context.Context { return ended }
		e.app.Send("in", record("in", "k", []byte("v")))
		if failed := e.group.failed.get(); failed != nil || e.app.Failure() == nil {
			t.Errorf("%v, and %v", failed, e.app.Failure())
		}
	}
}

func TestADeadLetterInsteadOfTheEnd(t *testing.T) {
	graph := bad(func(ctx Context, message any) {
		ctx.SetValue(int64(1))
		if message == "bad" {
			panic("not this one")
		}
		ctx.Emit("out", ctx.Key(), message)
	}, Persist(new(codec.Int64)))
	e := newEngine(t, graph, []ProcessorOption{WithDeadLetters()})
	for _, text := range []string{"one", "bad", "two"} {
		e.app.Send("in", stream.KafkaRecord{Topic: "in", Key: []byte("k"), Value: []byte(text), Time: wallarootest.Start})
	}
	letters := e.app.DeadLetters()
	if len(letters) != 1 || !strings.Contains(letters[0].Reason, "panic in callback: not this one") || e.group.failed.get() != nil {
		t.Errorf("%+v", letters)
	}
	if got := e.app.KafkaRecords("out"); len(got) != 2 || len(e.app.KafkaRecords("bad-table")) != 2 {
		t.Errorf("%v", got)
	}
}

// TestTheRuntimeKnowsTheStepOfAGroup checks the symbol of a group's step. By this symbol error_policy.py of the runtime
// knows that the remedy of a failure is WithDeadLetters.
func TestTheRuntimeKnowsTheStepOfAGroup(t *testing.T) {
	for _, graph := range []*GroupGraph{bad(func(Context, any) {}), bad(func(Context, any) {}, Persist(new(codec.Int64)))} {
		text := workermain.Text(declaration.Revealed(application([]string{"127.0.0.1:9092"}, []*group{groupOf(graph)})))
		if !strings.Contains(text, `"symbol": "goka.(*group).state`) {
			t.Error(text)
		}
	}
}

// TestNamesOfHeaders checks that a message fails as a whole if a callback writes a header whose name is not UTF-8, and
// that other names arrive.
func TestNamesOfHeaders(t *testing.T) {
	graph := DefineGroup("h", Persist(new(codec.String)), Output("out", new(codec.String)), Input("in", new(codec.String), func(ctx Context, _ any) {
		ctx.SetValue("set")
		ctx.Emit("out", "k", "v", WithCtxEmitHeaders(Headers{ctx.Key(): {0xff}}))
	}))
	e := newEngine(t, graph, []ProcessorOption{WithDeadLetters()})
	random, valid, invalid := rand.New(rand.NewPCG(1, 1)), 0, 0
	for range 200 {
		name := string([]rune{rune(random.IntN(300)), rune(random.IntN(300))})[random.IntN(2):]
		e.app.Send("in", record("in", name, []byte("x")))
		if utf8.ValidString(name) {
			valid++
		} else {
			invalid++
		}
	}
	letters, out, table := e.app.DeadLetters(), e.app.KafkaRecords("out"), e.app.KafkaRecords("h-table")
	if len(letters) != invalid || len(out) != valid || len(table) != valid || invalid == 0 || valid == 0 {
		t.Errorf("%d letters, %d and %d records of %d invalid and %d valid names", len(letters), len(out), len(table), invalid, valid)
	}
	if letters[0].Step != "h" || !strings.Contains(letters[0].Reason, "of the record of key k for topic out has a name that is not UTF-8") {
		t.Errorf("%+v", letters[0])
	}
}

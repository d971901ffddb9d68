package goka

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wallarooapi/goka/codec"
)

// lines is a writer for the log of a processor, which several goroutines write.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(data)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// TestWhatACallbackDoesAfterItsReturn checks that methods of a context have no effect after the callback has returned,
// and that the group reports such calls.
func TestWhatACallbackDoesAfterItsReturn(t *testing.T) {
	for name, use := range map[string]func(Context){
		"Value": func(ctx Context) {
			if got := ctx.Value(); got != nil {
				t.Errorf("a value, %v", got)
			}
		},
		"SetValue":    func(ctx Context) { ctx.SetValue(int64(5)) },
		"Delete":      func(ctx Context) { ctx.Delete() },
		"Join":        func(ctx Context) { ctx.Join("users") },
		"Emit":        func(ctx Context) { ctx.Emit("out", "k", "late") },
		"Loopback":    func(ctx Context) { ctx.Loopback("k", "late") },
		"DeferCommit": func(ctx Context) { ctx.DeferCommit()(nil) },
	} {
		said, kept, first := &lines{}, make(chan Context, 1), true
		graph := DefineGroup("late", Persist(new(codec.Int64)), Join("users", new(codec.String)), Output("out", new(codec.String)),
			Loop(new(codec.String), func(Context, any) {}), Input("in", new(codec.String), func(ctx Context, _ any) {
				if first {
					ctx.SetValue(int64(1))
					kept <- ctx
				}
				first = false
			}))
		e := newEngine(t, graph, []ProcessorOption{WithLogger(log.New(said, "", 0))})
		ended := make(chan error, 1)
		e.group.abort = func(err error) { ended <- err }
		e.app.Send("in", record("in", "k", []byte("first")))
		go use(<-kept)
		want := "processor late: ctx." + name + " was called after the callback had returned, for key k from in/0, offset 0: " +
			"it has no effect; a callback whose goroutines use its context calls ctx.DeferCommit, and they call the function that it " +
			"returns when they are done"
		if err := <-ended; err.Error() != want {
			t.Errorf("%v\ninstead of\n%s", err, want)
		}
		if said.String() != want+"\n" {
			t.Errorf("the log has %q", said)
		}
		e.app.Send("in", record("in", "k", []byte("second")))
		if failed := e.group.failed.get(); failed != nil {
			t.Errorf("the next message: %v", failed)
		}
		if out := e.app.KafkaRecords("out"); len(out) != 0 {
			t.Errorf("%v", out)
		}
	}
}

// TestWritesAfterTheReturnWithDeadLetters checks that with dead letters a late call is only logged: the processor
// continues and no other message fails.
func TestWritesAfterTheReturnWithDeadLetters(t *testing.T) {
	kept, said := make(chan Context, 3), &lines{}
	graph := DefineGroup("late", Input("in", new(codec.String), func(ctx Context, _ any) { kept <- ctx }), Output("out", new(codec.String)))
	e := newEngine(t, graph, []ProcessorOption{WithDeadLetters(), WithLogger(log.New(said, "", 0))})
	e.group.abort = func(err error) { t.Error(err) }
	e.app.Send("in", record("in", "k", []byte("first")))
	(<-kept).Emit("out", "k", "late")
	e.app.Send("in", record("in", "k", []byte("second")), record("in", "k", []byte("third")))
	if letters := e.app.DeadLetters(); len(letters) != 0 || len(kept) != 2 {
		t.Errorf("%+v, and %d calls", letters, len(kept))
	}
	if !strings.Contains(said.String(), "ctx.Emit was called after the callback had returned") {
		t.Errorf("the log has %q", said)
	}
}

// TestWritesAfterTheReturnWithoutRun checks that after a late call the next message fails, if the runtime has started
// the program.
func TestWritesAfterTheReturnWithoutRun(t *testing.T) {
	kept := make(chan Context, 2)
	graph := DefineGroup("late", Input("in", new(codec.String), func(ctx Context, _ any) { kept <- ctx }), Output("out", new(codec.String)))
	e := newEngine(t, graph, []ProcessorOption{WithLogger(log.New(&lines{}, "", 0))})
	e.app.Send("in", record("in", "k", []byte("first")))
	(<-kept).Emit("out", "k", "late")
	e.app.Send("in", record("in", "k", []byte("second")))
	if stopped := e.app.Failure(); stopped == nil || !strings.Contains(stopped.Error(), "ctx.Emit was called after the callback had returned") {
		t.Error(stopped)
	}
}

// TestGoroutinesOfACallbackThatDefers checks that goroutines of a callback that has called DeferCommit may write.
func TestGoroutinesOfACallbackThatDefers(t *testing.T) {
	graph := DefineGroup("deferring", Persist(new(codec.Int64)), Output("out", new(codec.String)),
		Input("in", new(codec.String), func(ctx Context, _ any) {
			for range 8 {
				done := ctx.DeferCommit()
				go func() {
					if got := ctx.Headers(); len(got) != 0 {
						t.Errorf("headers %v", got)
					}
					ctx.Emit("out", "k", "in time")
					ctx.SetValue(int64(7))
					inner := ctx.DeferCommit() // is waited for, too
					done(nil)
					ctx.Emit("out", "k", "in time")
					inner(nil)
				}()
			}
		}))
	e := newEngine(t, graph, nil)
	e.app.Send("in", record("in", "k", []byte("first")))
	if out := e.app.KafkaRecords("out"); len(out) != 16 || e.group.failed.get() != nil {
		t.Errorf("%d records, %v", len(out), e.group.failed.get())
	}
}

// TestACallbackThatDoesNotReturn checks that the error of Run names the message of such a callback.
func TestACallbackThatDoesNotReturn(t *testing.T) {
	began, end := make(chan bool), make(chan bool)
	graph := DefineGroup("stuck", Input("in", new(codec.String), func(Context, any) {
		close(began)
		<-end
	}))
	e := newEngine(t, graph, nil)
	returned := make(chan bool)
	go func() {
		defer close(returned)
		e.app.Send("in", record("in", "k", []byte("first")))
	}()
	<-began
	all := []*Processor{{graph: graph, group: e.group}}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := outcome(ctx, all, nil); err == nil || !strings.Contains(err.Error(), "has ended without a callback that has not returned, "+
		"whose message the next run repeats: group stuck, key k from in/0, offset 0, for ") {
		t.Error(err)
	}
	close(end)
	<-returned
	if err := outcome(ctx, all, errors.New("of the runtime")); err != nil {
		t.Error(err)
	}
}

// TestAnotherProcessorOfTheGroup checks the wait for another processor that uses the checkpoint: one line of the log,
// and an error with a remedy at the end.
func TestAnotherProcessorOfTheGroup(t *testing.T) {
	defer func(before time.Duration) { takeoverTime = before }(takeoverTime)
	takeoverTime = 1500 * time.Millisecond
	count := filepath.Join(t.TempDir(), "runs")
	said := &lines{}
	graph := counted()
	p := &Processor{graph: graph, state: NewSignal(ProcStateIdle, ProcStateRunning, ProcStateStopping), group: groupOf(graph)}
	p.group.options.log = log.New(said, "", 0)
	err := supervise(context.Background(), []*Processor{p}, []string{"sh", "-c", "echo run >>" + count + "; echo logs in c/logs; " +
		"echo 'R610 checkpoint c is in use by another run (process 7)' >&2; echo '  fix: wait' >&2; exit 1"})
	if err == nil || err.Error() != "the checkpoint of group g is in use by another run (process 7): a group has one processor at a time; "+
		"stop that one, or give this one a group of its own (R610)" {
		t.Error(err)
	}
	if text := said.String(); strings.Count(text, "waiting up to 1.5s\n") != 1 || strings.Contains(text, "R610") || strings.Contains(text, "fix") {
		t.Errorf("the log has %q", text)
	}
	if runs, err := os.ReadFile(count); err != nil || strings.Count(string(runs), "run") < 2 {
		t.Errorf("%q, %v", runs, err)
	}
}

package stage_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

// closing returns a case with one step, which has one timer.
func closing(ttlMs int64, events ...timerEvent) *timerCase {
	wa.RegisterType(&timedValues{})
	return &timerCase{Name: "closing", Time: "ingest", TTLMs: ttlMs, Steps: []map[string]behaviour{{"x": {Gives: true}}}, Events: events}
}

func setting(sequence uint64, time int64, after ...int64) timerEvent {
	event := timerEvent{Sequence: sequence, Time: time, Key: "a", Value: int64(sequence)}
	for _, each := range after {
		event.Ops = append(event.Ops, timerOp{Set: "x", After: &each})
	}
	return event
}

func ticking(sequence uint64, time int64) timerEvent {
	return timerEvent{Sequence: sequence, Tick: &time}
}

func TestAStepWithoutTimesReadsStatesThatHaveThem(t *testing.T) {
	defer example.SetSerialize(false)()
	c := closing(50, setting(0, 10, 5))
	_, log, _ := windowCall(t, c.executor(t, false), nil, false, c.frames(t, 0, 1)...)
	untimed := c.executor(t, true)
	_, again, bucket := windowCall(t, untimed, log, true)
	entry := bucket.Table(1).Get([]byte("a"))
	if entry.Time != nil || !slices.Equal(entry.Value.(*timedValues).Values, []int64{0}) {
		t.Errorf("the state is %v, %v", entry.Value, entry.Time)
	}
	c.Events = append(c.Events, ticking(1, 100), ticking(2, 149), ticking(3, 150))
	for i, keys := range []int{1, 1, 0} {
		var changes [][]byte
		outputs, changes, bucket := windowCall(t, c.executor(t, false), again, false, c.frames(t, i+1, i+2)...)
		again = append(again, changes...)
		if len(outputs) > 0 || bucket.Keys() != keys {
			t.Errorf("tick %d: %d outputs, %d keys; want %d", i, len(outputs), bucket.Keys(), keys)
		}
	}
}

func TestTimesOfALargeStateAreInItsPieces(t *testing.T) {
	for _, own := range []bool{false, true} {
		func() {
			defer example.SetSerialize(false)()
			if own {
				wa.Serialize = func(any) []byte { return []byte(strings.Repeat("s", 100)) }
				wa.Deserialize = func([]byte) any { return &timedValues{Values: []int64{0}} }
			}
			c := closing(50, setting(0, 10, 5), ticking(1, 15))
			x := c.executor(t, false)
			x.CutStates(7)
			var got timerResult
			_, log, _ := windowCall(t, x, nil, false, c.frames(t, 0, 1)...)
			if len(log) < 5 {
				t.Fatalf("the log has %d entries", len(log))
			}
			outputs, _, _ := windowCall(t, x, log, false, c.frames(t, 1, 2)...)
			got.count(x)
			got.take(t, outputs)
			if want := []string{"1 a 15 0 x 15 [0]"}; !own && !reflect.DeepEqual(got.outputs, want) || got.fired != 1 {
				t.Errorf("%q, %d fired; want %q", got.outputs, got.fired, want)
			}
		}()
	}
}

func TestATimeThatIsCutIsC507(t *testing.T) {
	defer example.SetSerialize(false)()
	c := closing(50, setting(0, 10, 5))
	x := c.executor(t, false)
	_, log, _ := windowCall(t, x, nil, false, c.frames(t, 0, 1)...)
	value := values(t, log[0])[0]
	for size := range 19 + 2 + len("00001") + 2 + 8 {
		b := frame.Builder{Port: 1, Encoding: 18}
		b.UseKey(b.AddKey([]byte("a")))
		b.Add(value[:size])
		entry, err := b.Frame()
		if err != nil {
			t.Fatal(err)
		}
		if err := x.NewLoader().Load(entry); err == nil || !strings.HasPrefix(err.Error(), "C507 ") {
			t.Errorf("%d bytes: error is %v; want C507", size, err)
		}
	}
}

func TestASkippedTickLeavesWhatIsDueToTheNextOne(t *testing.T) {
	defer example.SetSerialize(false)()
	c := closing(0, setting(0, 10, 5), ticking(1, 20), ticking(2, 21))
	x := c.executor(t, false)
	x.Begin(0, []*pb.Skip{{Ordinal: 0, Code: "C509", Reason: "no answer within 1 s"}})
	call := x.NewCall(state.NewBucket(), nil)
	if err := call.Run(c.frames(t, 0, 3)...); err != nil { // ticks stand before messages, and have the first ordinals
		t.Fatal(err)
	}
	outputs, _, _, err := call.Finish(false)
	if err != nil {
		t.Fatal(err)
	}
	letter := collect(t, outputs).letters[0]
	if letter.GetCode() != "C509" || letter.GetHasKey() || letter.GetSequence() != 1 || len(letter.GetInput()) != 0 {
		t.Errorf("the dead letter is %v", letter)
	}
	var got timerResult
	got.take(t, outputs)
	if want := []string{"0 a 10 0  10 [0]", "2 a 21 0 x 15 [0]"}; !slices.Equal(got.outputs, want) {
		t.Errorf("%q; want %q", got.outputs, want)
	}
}

func TestATimerThatTheStepNoLongerHasIsGone(t *testing.T) {
	defer example.SetSerialize(false)()
	c := closing(50, setting(0, 10, 5), ticking(1, 20))
	_, log, _ := windowCall(t, c.executor(t, false), nil, false, c.frames(t, 0, 1)...)
	c.Steps[0] = map[string]behaviour{}
	x := c.executor(t, false)
	outputs, changes, bucket := windowCall(t, x, log, false, c.frames(t, 1, 2)...)
	if len(outputs) > 0 || len(changes) != 1 || len(bucket.Table(1).Get([]byte("a")).Time.Timers) > 0 {
		t.Errorf("%d outputs, %d changes, %v", len(outputs), len(changes), bucket.Table(1).Get([]byte("a")).Time)
	}
	steps := []*declaration.Step{{Path: "0/steps/0", Kind: declaration.StateComputation, Stateful: timedStep{c, 0}, State: &declaration.State{}}}
	app := &declaration.Application{Pipelines: []*declaration.Pipeline{{Steps: steps}}}
	node := &pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Timers: []string{"y"}}
	if _, err := stage.New(app, &pb.Stage{Nodes: []*pb.Node{node}}); err == nil || err.Error() != `W403 the step at 0/steps/0 has no timer "y"` {
		t.Errorf("error is %v; want W403", err)
	}
}

func TestTicksWithoutWorkLeaveNothingToWrite(t *testing.T) {
	defer example.SetSerialize(false)()
	c := closing(500, setting(0, 10, 50), ticking(1, 20), ticking(2, 59))
	x := c.executor(t, false)
	_, log, _ := windowCall(t, x, nil, false, c.frames(t, 0, 1)...)
	if outputs, changes, _ := windowCall(t, x, log, false, c.frames(t, 1, 3)...); len(outputs)+len(changes) > 0 {
		t.Errorf("%d outputs and %d changes of ticks at which nothing is due", len(outputs), len(changes))
	}
}

func BenchmarkTicksAmongManyTimers(b *testing.B) {
	defer example.SetSerialize(false)()
	c := closing(0)
	for i := range 100_000 {
		event := setting(uint64(i), 10, 1_000_000)
		event.Key = fmt.Sprint("key ", i)
		c.Events = append(c.Events, event)
	}
	c.Events = append(c.Events, ticking(100_000, 500))
	x := c.executor(b, false)
	_, _, bucket := windowCall(b, x, nil, false, c.frames(b, 0, 100_000)...)
	tick := c.frames(b, 100_000, 100_001)
	b.ResetTimer()
	for b.Loop() {
		call := x.NewCall(bucket, nil)
		if err := call.Run(tick...); err != nil {
			b.Fatal(err)
		}
		if _, _, _, err := call.Finish(false); err != nil {
			b.Fatal(err)
		}
	}
}

package stage_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/internal/testdata/vector"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// gathered is the aggregation of the test vectors. It fails in Update for a message -1, and in Output for -2. For -3 it
// makes an accumulator that cannot be serialized.
type gathered struct{}

func (gathered) InitialAccumulator() any { return []int64(nil) }

func (gathered) Update(input, accumulator any) any {
	if input == int64(-1) {
		panic("minus one")
	}
	if input == int64(-3) {
		return make(chan int)
	}
	return append(slices.Clone(accumulator.([]int64)), input.(int64))
}

func (gathered) Combine(first, second any) any {
	return append(slices.Clone(first.([]int64)), second.([]int64)...)
}

func (gathered) Output(key []byte, accumulator any, bounds declaration.Bounds) emission.Results {
	if slices.Contains(accumulator.([]int64), -2) {
		panic("minus two")
	}
	return emission.Results{One: fmt.Sprint(string(key), " ", accumulator, bounds)}
}

type gatherer struct{}

func (gatherer) Build() any { return []int64(nil) }

type windowCase struct {
	Name   string
	Window struct {
		Kind    string
		RangeMs int `json:"range_ms"`
		SlideMs int `json:"slide_ms"`
		GapMs   int `json:"gap_ms"`
		DelayMs int `json:"delay_ms"`
		Late    string
		Time    string
		Count   int
		FlushMs int `json:"flush_ms"`
	}
	Events []struct {
		Sequence uint64
		Time     int64
		Tick     *int64
		Key      string
		Value    int64
	}
	IsOneCall bool `json:"is_one_call"`
	Outputs   []struct {
		Sequence uint64
		Key      string
		Time     int64
		Values   []int64
		Bounds   [2]int64
	}
	DeadLetters []struct {
		Sequence  uint64
		Key, Code string
		Time      int64
	} `json:"dead_letters"`
	Dropped uint64
	Keys    []string
}

// executor makes a stage with the window step of a case, whose results leave through a key exit.
func (c *windowCase) executor(t testing.TB) *stage.Executor {
	t.Helper()
	w := c.Window
	var described topology.Window = &topology.CountWindow{Count: w.Count, FlushMs: w.FlushMs}
	switch w.Kind {
	case "range":
		described = &topology.RangeWindow{RangeMs: w.RangeMs, SlideMs: w.SlideMs, DelayMs: w.DelayMs, Late: w.Late, Time: w.Time}
	case "session":
		described = &topology.SessionWindow{GapMs: w.GapMs, DelayMs: w.DelayMs, Late: w.Late, Time: w.Time}
	}
	byKey := &declaration.State{Name: "w", Builder: gatherer{}, ByKey: true}
	return newExecutor(t, &declaration.Application{Pipelines: []*declaration.Pipeline{{Steps: []*declaration.Step{
		{Path: "0/steps/0", Name: "values", Kind: declaration.Window, State: byKey, Window: described, Aggregation: gathered{}},
		{Path: "0/steps/1", Name: "next", Kind: declaration.StateComputation, State: byKey, Stateful: declaration.FunctionsOf(example.CountWords{})},
	}}}}, &pb.Stage{Id: "s1", BucketCount: 1, Nodes: []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_WINDOW, Port: 1, StatePort: 1},
		{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 2, Timestamps: true},
	}})
}

// frames makes a frame of each event.
func (c *windowCase) frames(t testing.TB) (all [][]byte) {
	t.Helper()
	for _, event := range c.Events {
		b := frame.Builder{Port: 1, Encoding: 17, TimestampMs: event.Time}
		if event.Tick != nil {
			bytes, err := frame.WriteFramed(frame.TickPort, event.Sequence, *event.Tick, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, bytes)
			continue
		}
		b.UseKey(b.AddKey([]byte(event.Key)))
		b.UseSequence(event.Sequence)
		b.Add(binary.AppendVarint([]byte{10}, event.Value))
		bytes, err := b.Frame()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes)
	}
	return all
}

// windowResult has the outputs, dead letters, states and counts of a case.
type windowResult struct {
	outputs, letters, keys []string
	dropped                uint64
}

// take adds the results of a call, and returns the new state log.
func (r *windowResult) take(t testing.TB, outputs []stage.OutputFrame, changes [][]byte, log [][]byte, whole bool) [][]byte {
	t.Helper()
	for _, output := range outputs {
		var f frame.Frame
		if _, err := f.Read(output.Frame); err != nil {
			t.Fatal(err)
		}
		for i, value := range values(t, output.Frame) {
			if output.Port == frame.DeadLetterPort {
				letter := letterOf(t, value)
				r.letters = append(r.letters, fmt.Sprint(letter.GetSequence(), " ", string(letter.GetKey()), " ", letter.GetCode(), " ", letter.GetTimestampMs()))
				continue
			}
			r.outputs = append(r.outputs, fmt.Sprint(f.SequenceOf(i), " ", string(f.Keys[f.KeyIndexes.At(i)]), " ", f.TimestampOf(i), " ", string(value[1:])))
		}
	}
	if whole {
		return changes
	}
	return append(log, changes...)
}

// windowCall runs frames in a bucket call on the states of a log.
func windowCall(t testing.TB, x *stage.Executor, log [][]byte, whole bool, frames ...[]byte) ([]stage.OutputFrame, [][]byte, *state.Bucket) {
	t.Helper()
	load := func() (*state.Bucket, error) {
		loader := x.NewLoader()
		for _, entry := range log {
			if err := loader.Load(entry); err != nil {
				return nil, err
			}
		}
		return loader.Bucket(), nil
	}
	bucket, err := load()
	if err != nil {
		t.Fatal(err)
	}
	x.Begin(0, nil)
	call := x.NewCall(bucket, load)
	if err := call.Run(frames...); err != nil {
		t.Fatal(err)
	}
	outputs, changes, bucket, err := call.Finish(whole)
	if err != nil {
		t.Fatal(err)
	}
	return outputs, changes, bucket
}

// droppedBy returns how many late messages a call has dropped.
func droppedBy(x *stage.Executor) (late uint64) {
	for _, count := range x.Counts() {
		late += count.GetMore()["dropped_late"]
	}
	return late
}

func keysOf(bucket *state.Bucket) (keys []string) {
	for entry := range bucket.Table(1).Entries() {
		keys = append(keys, entry.Key)
	}
	slices.Sort(keys)
	return keys
}

func (c *windowCase) want() (r windowResult) {
	for _, o := range c.Outputs {
		r.outputs = append(r.outputs, fmt.Sprint(o.Sequence, " ", o.Key, " ", o.Time, " ", o.Key, " ", o.Values, declaration.Bounds{StartMs: o.Bounds[0], EndMs: o.Bounds[1]}))
	}
	for _, letter := range c.DeadLetters {
		r.letters = append(r.letters, fmt.Sprint(letter.Sequence, " ", letter.Key, " ", letter.Code, " ", letter.Time))
	}
	r.keys, r.dropped = slices.Sorted(slices.Values(c.Keys)), c.Dropped
	return r
}

// differences runs a case in one call, and in a call for each event. It describes how the results differ from the case.
func (c *windowCase) differences(t testing.TB) (found []string) {
	t.Helper()
	x, want := c.executor(t), c.want()
	compare := func(how string, got windowResult) {
		if len(got.keys) == 0 {
			got.keys = want.keys[:0]
		}
		if !reflect.DeepEqual(got, want) {
			found = append(found, fmt.Sprintf("%s: %s: %q; want %q", c.Name, how, got, want))
		}
	}
	var once windowResult
	outputs, changes, bucket := windowCall(t, x, nil, false, c.frames(t)...)
	once.take(t, outputs, changes, nil, false)
	once.keys, once.dropped = keysOf(bucket), droppedBy(x)
	compare("in one call", once)
	if c.IsOneCall {
		return found
	}
	var each windowResult
	var log [][]byte
	for i, one := range c.frames(t) {
		outputs, changes, bucket = windowCall(t, x, log, i%4 == 3, one)
		log = each.take(t, outputs, changes, log, i%4 == 3)
		each.keys = keysOf(bucket)
		each.dropped += droppedBy(x)
	}
	_, _, bucket = windowCall(t, x, log, false)
	if got := keysOf(bucket); !slices.Equal(got, each.keys) {
		found = append(found, fmt.Sprintf("%s: the log has the keys %q, the bucket %q", c.Name, got, each.keys))
	}
	compare("call by call", each)
	return found
}

func TestWindowVectors(t *testing.T) {
	var file struct{ Cases []windowCase }
	vector.Read(t, "windows.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range file.Cases {
		for _, difference := range c.differences(t) {
			t.Error(difference)
		}
	}
}

func TestWrongWindowVectorsFail(t *testing.T) {
	var file struct{ Windows []windowCase }
	vector.Read(t, "selftest.json", &file)
	if len(file.Windows) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range file.Windows {
		if len(c.differences(t)) == 0 {
			t.Errorf("%s: passed", c.Name)
		}
	}
}

func tumbling(values ...int64) *windowCase {
	c := &windowCase{}
	c.Window.Kind, c.Window.RangeMs, c.Window.SlideMs, c.Window.Late, c.Window.Time = "range", 10, 10, "drop", "ingest"
	for i, value := range values {
		c.add(uint64(i), int64(i), value)
	}
	return c
}

func (c *windowCase) add(sequence uint64, time, value int64) {
	c.Events = slices.Grow(c.Events, 1)[:len(c.Events)+1]
	event := &c.Events[len(c.Events)-1]
	event.Sequence, event.Time, event.Key, event.Value = sequence, time, "a", value
}

func (c *windowCase) tick(sequence uint64, time int64) {
	c.add(sequence, time, 0)
	c.Events[len(c.Events)-1].Tick = &time
}

func TestASkippedTickIsADeadLetterAndTheNextOneDoesItsWork(t *testing.T) {
	c := tumbling(1)
	c.tick(1, 10)
	c.tick(1, 11)
	x := c.executor(t)
	x.Begin(0, []*pb.Skip{{Ordinal: 1, Code: "C509", Reason: "no answer within 1 s"}})
	call := x.NewCall(state.NewBucket(), nil)
	if err := call.Run(c.frames(t)...); err != nil {
		t.Fatal(err)
	}
	outputs, _, _, err := call.Finish(false)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(outputs, func(a, b stage.OutputFrame) int { return cmp.Compare(b.Port, a.Port) })
	letter := letterOf(t, values(t, outputs[0].Frame)[0])
	if letter.GetCode() != "C509" || letter.GetHasKey() || letter.GetSequence() != 1 || len(letter.GetInput()) != 0 {
		t.Errorf("the dead letter is %v", letter)
	}
	if got := string(values(t, outputs[1].Frame)[0]); got != "\x01a [1] {0 10}" {
		t.Errorf("the output is %q", got)
	}
}

func TestAWindowThatGivesNothingIsToldWithItsAccumulator(t *testing.T) {
	c := tumbling(1, -2)
	c.tick(2, 10)
	outputs, _, _ := windowCall(t, c.executor(t), nil, false, c.frames(t)...)
	letters := collect(t, outputs).letters
	if len(letters) != 1 || letters[0].GetCode() != "C517" || letters[0].GetPreview() != "[1,-2]" ||
		letters[0].GetError() != `values: the window of key "a" has no result; minus two` || !strings.Contains(letters[0].GetTraceback(), "gathered.Output") {
		t.Errorf("dead letters are %v", letters)
	}
}

func TestTheTypeOfAnAccumulatorThatCannotBeSerialized(t *testing.T) {
	outputs, _, _ := windowCall(t, tumbling(1, -3).executor(t), nil, false, tumbling(1, -3).frames(t)...)
	letters := collect(t, outputs).letters
	if len(letters) != 1 || letters[0].GetCode() != "C504" || !strings.HasPrefix(letters[0].GetError(), "values: chan int cannot be serialized; ") {
		t.Errorf("dead letters are %v", letters)
	}
}

func TestTicksAndSilentKeysLeaveNothingToWrite(t *testing.T) {
	c := tumbling(1)
	x := c.executor(t)
	_, log, _ := windowCall(t, x, nil, false, c.frames(t)...)
	quiet, ended := tumbling(), tumbling()
	quiet.tick(1, 9)
	ended.tick(1, 99)
	if _, changes, _ := windowCall(t, x, log, false, quiet.frames(t)...); len(changes) != 0 {
		t.Errorf("%d changes of a tick that gave nothing out", len(changes))
	}
	_, changes, _ := windowCall(t, x, log, false, ended.frames(t)...)
	log = append(log, changes...)
	if _, changes, bucket := windowCall(t, x, log, false, ended.frames(t)...); len(changes) != 0 || bucket.Keys() != 0 {
		t.Errorf("%d changes and %d keys after the end of all keys", len(changes), bucket.Keys())
	}
}

func TestAFrameThatIsNotForWindows(t *testing.T) {
	x := tumbling().executor(t)
	for _, bytes := range [][]byte{keyless(t), make([]byte, 40)} {
		err := x.NewCall(state.NewBucket(), nil).Run(bytes)
		if err == nil || !strings.HasPrefix(err.Error(), "W410 ") {
			t.Errorf("error is %v; want W410", err)
		}
	}
}

func keyless(t *testing.T) []byte {
	t.Helper()
	b := frame.Builder{Port: 1, Encoding: 17}
	b.Add([]byte{10, 2})
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

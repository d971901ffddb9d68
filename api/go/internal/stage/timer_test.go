package stage_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/internal/testdata/vector"
	"wallarooapi/internal/timing"
	pb "wallarooapi/internal/workerpb"
)

// timerOp is one call of a function: it sets or deletes a timer.
type timerOp struct {
	Set, Delete string
	After, At   *int64
}

func (o timerOp) ask(call *timing.Changes) {
	switch {
	case o.Delete != "":
		call.Delete(o.Delete)
	case o.After != nil:
		call.SetAfter(o.Set, time.Duration(*o.After)*time.Millisecond)
	default:
		call.Set(o.Set, time.UnixMilli(*o.At))
	}
}

// behaviour describes what the function of a step or timer does in a case.
type behaviour struct {
	Ops                   []timerOp
	Appends               []int64
	Gives, Deletes, Fails bool
}

type timerEvent struct {
	Sequence uint64
	Time     int64
	Tick     *int64
	Visit    bool // the tick is a visit
	Key      string
	Value    int64
	Step     int
	Ops      []timerOp
}

type timerCase struct {
	Name      string
	Steps     []map[string]behaviour
	Time      string
	TTLMs     int64 `json:"ttl_ms"`
	Before    map[string][]int64
	Events    []timerEvent
	IsOneCall bool `json:"is_one_call"`
	Outputs   []struct {
		Sequence  uint64
		Key       string
		Time, Now int64
		Step      int
		Timer     string
		Values    []int64
	}
	DeadLetters []struct {
		Sequence         uint64
		Key, Code, Timer string
		Time             int64
		Step             int
	} `json:"dead_letters"`
	Expired     uint64
	TimersFired uint64 `json:"timers_fired"`
	Visited     []uint64
	Keys        []struct {
		Key    string
		Values []int64
		Timers [][]any
	}
}

// timedValues is the state of a key.
type timedValues struct{ Values []int64 }

type timedBuilder struct{}

func (timedBuilder) Build() any { return &timedValues{Values: []int64{}} }

// timedStep has the functions of a step of a case. A message is the index of its event in the case.
type timedStep struct {
	c      *timerCase
	number int
}

func (s timedStep) give(timer string, now int64, values []int64) string {
	return fmt.Sprint(s.number, " ", timer, " ", now, " ", values)
}

func (s timedStep) Compute(call *timing.Changes, data, kept any) emission.Results {
	event, values := s.c.Events[data.(int64)], kept.(*timedValues)
	values.Values = append(values.Values, event.Value)
	for _, op := range event.Ops {
		op.ask(call)
	}
	if event.Value == -1 {
		panic("minus one")
	}
	return emission.Results{One: s.give("", call.Now, values.Values)}
}

func (s timedStep) Visit(*wa.Visit, any) emission.Results { return emission.Results{} }

func (s timedStep) Fire(call *timing.Changes, timer *wa.Timer, kept any) emission.Results {
	does, values := s.c.Steps[s.number][timer.Name], kept.(*timedValues)
	values.Values = append(values.Values, does.Appends...)
	for _, op := range does.Ops {
		op.ask(call)
	}
	if does.Fails {
		panic("asked to fail")
	}
	if does.Deletes {
		timer.DeleteState()
	}
	results := emission.Results{Persist: true}
	if does.Gives {
		results.One = s.give(timer.Name, timer.At.UnixMilli(), values.Values)
	}
	return results
}

// timedSteps is a timedStep that returns its result as a list.
type timedSteps struct{ timedStep }

func (s timedSteps) Compute(call *timing.Changes, data, kept any) emission.Results {
	return emission.Results{Many: []any{s.timedStep.Compute(call, data, kept).One}}
}

func (s timedSteps) Fire(call *timing.Changes, timer *wa.Timer, kept any) emission.Results {
	return emission.Results{Many: []any{s.timedStep.Fire(call, timer, kept).One}, Persist: true}
}

// path returns the path of a step. The order of the paths' bytes is not that of the steps' numbers.
func (c *timerCase) path(step int) string { return fmt.Sprint("0/steps/", 9+step) }

// executor makes a stage of the steps, whose results leave through a key exit. With untimed, the steps have neither
// timers nor a TTL.
func (c *timerCase) executor(t testing.TB, untimed bool) *stage.Executor {
	t.Helper()
	byKey := &declaration.State{Name: "s", Builder: timedBuilder{}, ByKey: true, TTLMs: int(c.TTLMs)}
	next := c.path(len(c.Steps))
	exit := &pb.Node{Path: next, Kind: pb.NodeKind_NODE_KIND_KEY, Port: 100, Timestamps: true}
	described := &pb.Stage{Id: "s1", BucketCount: 1}
	var steps []*declaration.Step
	for i, timers := range c.Steps {
		node := &pb.Node{Path: c.path(i), Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: uint32(1 + i), StatePort: 1}
		step := &declaration.Step{Path: node.Path, Name: fmt.Sprint("step ", i), Kind: declaration.StateComputation, State: byKey, Stateful: timedStep{c, i}}
		if i%2 == 1 {
			node.Kind, step.Kind = pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, declaration.StateComputationMulti
			step.Stateful = timedSteps{timedStep{c, i}}
		}
		step.Visits = []string{"look"}
		node.Visits = step.Visits
		for name := range timers {
			step.Timers = append(step.Timers, name)
		}
		if !untimed {
			node.TtlMs, node.Timers, node.EventTime = uint64(c.TTLMs), step.Timers, c.Time != "ingest"
			node.Watermarks = c.Time == "watermarks"
		}
		steps, described.Nodes = append(steps, step), append(described.Nodes, node)
		exit.Inputs = append(exit.Inputs, node.Path)
	}
	steps = append(steps, &declaration.Step{Path: next, Name: "next", Kind: declaration.StateComputation, State: byKey, Stateful: declaration.FunctionsOf(example.CountWords{})})
	described.Nodes = append(described.Nodes, exit)
	return newExecutor(t, &declaration.Application{Pipelines: []*declaration.Pipeline{{Steps: steps}}}, described)
}

// log returns the state log with the states that a case has at its start, as steps without timers and TTL write them.
func (c *timerCase) log(t testing.TB) [][]byte {
	x, bucket := c.executor(t, true), state.NewBucket()
	for key, values := range c.Before {
		table := bucket.Table(1)
		table.Touch(table.Add([]byte(key), &timedValues{slices.Clone(values)}))
	}
	x.Begin(0, nil)
	_, changes, _, err := x.NewCall(bucket, nil).Finish(false)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// frames makes frames of the events of a case: one for each tick, and one for the messages of each step.
func (c *timerCase) frames(t testing.TB, from, to int) (all [][]byte) {
	t.Helper()
	builders, known := make([]frame.Builder, len(c.Steps)), make([]map[string]uint32, len(c.Steps))
	for i := range builders {
		builders[i], known[i] = frame.Builder{Port: uint16(1 + i), Encoding: 17}, map[string]uint32{}
	}
	for i, event := range c.Events[from:to] {
		if event.Tick != nil {
			bytes, err := frame.WriteFramed(frame.TickPort, event.Sequence, *event.Tick, 0, nil)
			if event.Visit {
				value, _ := proto.Marshal(&pb.Visit{Id: event.Sequence, Name: "look"})
				visit := frame.Builder{Port: frame.VisitPort}
				visit.UseSequence(event.Sequence)
				visit.UseTimestamp(*event.Tick)
				visit.Add(value)
				bytes, err = visit.Frame()
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, bytes)
			continue
		}
		b := &builders[event.Step]
		position, is := known[event.Step][event.Key]
		if !is {
			position = b.AddKey([]byte(event.Key))
			known[event.Step][event.Key] = position
		}
		b.UseKey(position)
		b.UseSequence(event.Sequence)
		b.UseTimestamp(event.Time)
		b.Add(binary.AppendVarint([]byte{10}, int64(from+i)))
	}
	for i := range builders {
		if builders[i].Count() == 0 {
			continue
		}
		bytes, err := builders[i].Frame()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes)
	}
	return all
}

// cut runs the events in calls that it draws. A call may use live states or states from the log, write all states or
// only changed ones, release outputs before its end, and be careful.
func (c *timerCase) cut(t testing.TB, draw *rand.Rand) (r timerResult) {
	t.Helper()
	x, log := c.executor(t, false), c.log(t)
	load := func() (*state.Bucket, error) {
		loader := x.NewLoader()
		for _, entry := range log {
			if err := loader.Load(entry); err != nil {
				return nil, err
			}
		}
		return loader.Bucket(), loader.End()
	}
	live, err := load()
	for from := 0; from < len(c.Events) && err == nil; {
		to, parts := from+1+draw.IntN(len(c.Events)-from), draw.IntN(3)
		if draw.IntN(3) == 0 {
			live, err = load()
		}
		x.Careful(draw.IntN(4) == 0)
		x.Begin(0, nil)
		call := x.NewCall(live, load)
		for ; parts > 0 && from < to && err == nil; parts-- {
			middle := from + draw.IntN(to-from+1)
			var released []stage.OutputFrame
			if err = call.Run(c.frames(t, from, middle)...); err == nil {
				released, err = call.Release()
			}
			r.take(t, released)
			from = middle
		}
		if err == nil {
			err = call.Run(c.frames(t, from, to)...)
		}
		if err != nil {
			break
		}
		from = to
		whole := draw.IntN(4) == 0
		var outputs []stage.OutputFrame
		var changes [][]byte
		outputs, changes, live, err = call.Finish(whole)
		r.take(t, outputs)
		if whole {
			log = nil
		}
		log = append(log, changes...)
		r.count(x)
	}
	if err == nil {
		live, err = load()
	}
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	r.takeKeys(live)
	return r
}

func (c *timerCase) differences(t testing.TB) (found []string) {
	t.Helper()
	want := c.want()
	if got := c.once(t); !reflect.DeepEqual(got, want) {
		found = append(found, fmt.Sprintf("%s: in one call: %q; want %q", c.Name, got, want))
	}
	for seed := uint64(0); seed < 20 && !c.IsOneCall; seed++ {
		if got := c.cut(t, rand.New(rand.NewPCG(seed, 35))); !reflect.DeepEqual(got, want) {
			return append(found, fmt.Sprintf("%s: cut by seed %d: %q; want %q", c.Name, seed, got, want))
		}
	}
	return found
}

func TestTimerVectors(t *testing.T) {
	defer example.SetSerialize(false)()
	wa.RegisterType(&timedValues{})
	var file struct{ Cases []*timerCase }
	vector.Read(t, "timers.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range file.Cases {
		for _, difference := range c.differences(t) {
			t.Error(difference)
		}
	}
}

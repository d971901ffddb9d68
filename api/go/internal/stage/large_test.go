package stage_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

// pile is a state whose size its messages determine.
type pile struct{ Parts [][]byte }

type pileBuilder struct{}

func (pileBuilder) Build() any { return &pile{} }

// growth is a message that makes the state larger by Size bytes, or empty if Size is 0. Persists says whether the
// function persists the state.
type growth struct {
	Key      string
	Size     int
	Persists bool
}

type grow struct{}

func (grow) Name() string { return "grow" }

func (grow) Compute(data, state any) (any, bool) {
	g, p := data.(*growth), state.(*pile)
	p.Parts = append(p.Parts, make([]byte, g.Size))
	if g.Size == 0 {
		p.Parts = nil
	}
	total := 0
	for _, part := range p.Parts {
		total += len(part)
	}
	return fmt.Sprint(total), g.Persists
}

type growths struct{ example.Lines }

func (growths) Decode(b []byte) any {
	g := &growth{}
	if _, err := fmt.Sscan(string(b), &g.Key, &g.Size, &g.Persists); err != nil {
		panic(err)
	}
	return g
}

type keyOfGrowth struct{}

func (keyOfGrowth) Partition(data any) []byte { return []byte(data.(*growth).Key) }

type text struct{}

func (text) Encode(data any) []byte { return []byte(data.(string)) }

// sized is a computation that returns a text as long as the Size of a message.
type sized struct{}

func (sized) Name() string { return "sized" }

func (sized) Build() any { return sized{} }

func (sized) Compute(data any) any { return strings.Repeat("v", data.(*growth).Size) }

func pileApp(t testing.TB) *declaration.Application {
	t.Helper()
	wa.RegisterType(&growth{})
	app := application.MakeApplication("Piles")
	app.NewPipeline("Piles", application.MakeTCPSourceConfig("127.0.0.1", "7010", growths{})).
		ToStatePartition(grow{}, pileBuilder{}, "pile", keyOfGrowth{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", text{}))
	app.NewPipeline("Sized", application.MakeTCPSourceConfig("127.0.0.1", "7011", growths{})).
		To(sized{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7003", text{}))
	return declared(t, app)
}

var (
	pileSplit = &pb.Stage{Id: "s0", BucketCount: 1, FrameBytes: 1 << 20, Nodes: []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 0},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/sources/0"}, Port: 1},
	}}
	pileStage = &pb.Stage{Id: "s1", BucketCount: 1, FrameBytes: 1 << 20, Nodes: []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: 1, State: "pile", StatePort: 1},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}}
	sizedStage = &pb.Stage{Id: "s0", BucketCount: 1, FrameBytes: 1 << 20, Nodes: []*pb.Node{
		{Path: "1/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 0},
		{Path: "1/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"1/sources/0"}},
		{Path: "1/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"1/steps/0"}, Port: 2},
	}}
)

// lines makes a journal frame of messages.
func lines(t testing.TB, messages []growth) []byte {
	t.Helper()
	texts := make([]string, len(messages))
	for i, g := range messages {
		texts[i] = fmt.Sprint(g.Key, " ", g.Size, " ", g.Persists)
	}
	return framed(t, texts...)
}

// crossed runs the stage before the shuffle. It returns the frames with the messages for the state, and the dead
// letters.
func crossed(t testing.TB, app *declaration.Application, messages []growth) ([]byte, []*pb.DeadLetter) {
	t.Helper()
	got := collect(t, run(t, newExecutor(t, app, pileSplit), lines(t, messages)))
	var all []byte
	for _, f := range got.buckets[0] {
		all = append(all, f...)
	}
	return all, got.letters
}

// pileCall runs frames in a bucket call on the states of a log, as the server does.
func pileCall(t testing.TB, app *declaration.Application, limit, pieces int, log [][]byte, whole bool, frames []byte) (*collected, [][]byte, error) {
	t.Helper()
	x := newExecutor(t, app, pileStage)
	x.LimitStates(limit)
	x.CutStates(pieces)
	load := func() (*state.Bucket, error) {
		loader := x.NewLoader()
		for _, entry := range log {
			if err := loader.Load(entry); err != nil {
				return nil, err
			}
		}
		return loader.Bucket(), loader.End()
	}
	bucket, err := load()
	if err != nil {
		return nil, nil, err
	}
	call := x.NewCall(bucket, load)
	if err := call.Run(frames); err != nil {
		return nil, nil, err
	}
	outputs, changes, _, err := call.Finish(whole)
	return collect(t, outputs), changes, err
}

func sums(log map[string][]int) map[string]int {
	all := map[string]int{}
	for key, sizes := range log {
		all[key] = 0
		for _, size := range sizes {
			all[key] += size
		}
	}
	return all
}

// TestStatesInPiecesAndAboveTheLimit lets the state of a key grow by messages of drawn sizes. Each call reads the
// states from the log.
func TestStatesInPiecesAndAboveTheLimit(t *testing.T) {
	app := pileApp(t)
	random := rand.New(rand.NewPCG(3, 5))
	refused := 0
	for range 60 {
		limit, pieces := 600+random.IntN(800), 1+random.IntN(300)
		var log [][]byte
		known := map[string][]int{}
		for range 5 {
			// One message for each key, so that who makes a state too large is known without a model of a call that is
			// run again.
			var messages []growth
			for _, key := range []string{"a", "b", "c"}[:1+random.IntN(3)] {
				messages = append(messages, growth{key, []int{0, 5, 200, 400, 900}[random.IntN(5)], true})
			}
			frames, _ := crossed(t, app, messages)
			whole := random.IntN(3) == 0
			got, changes, err := pileCall(t, app, limit, pieces, log, whole, frames)
			if err != nil {
				t.Fatal(err)
			}
			if log = append(log, changes...); whole {
				log = changes
			}
			dead := map[string]bool{}
			for _, letter := range got.letters {
				dead[string(letter.GetKey())] = true
				if letter.GetCode() != "C525" || !strings.Contains(letter.GetError(), fmt.Sprintf("at most %d are possible", limit)) {
					t.Fatalf("letter %v", letter)
				}
				refused++
			}
			for _, g := range messages {
				after := append(append([]int{}, known[g.Key]...), g.Size)
				if g.Size == 0 {
					after = nil
				}
				// The bytes of a state are those of its parts and 60 to 120 of gob's.
				sum := sums(map[string][]int{"": after})[""]
				if dead[g.Key] != (sum > limit) && (sum+140 < limit || sum > limit) {
					t.Fatalf("a state of %d bytes with limit %d: dead letter %v", sum, limit, dead[g.Key])
				}
				if !dead[g.Key] {
					known[g.Key] = after
				}
			}
		}
		// What each key has is what a message that adds a known size finds.
		frames, _ := crossed(t, app, []growth{{"a", 1, false}, {"b", 1, false}, {"c", 1, false}})
		got, _, err := pileCall(t, app, 1<<30, pieces, log, false, frames)
		want := sums(known)
		if expected := []string{fmt.Sprint(want["a"] + 1), fmt.Sprint(want["b"] + 1), fmt.Sprint(want["c"] + 1)}; err != nil ||
			!reflect.DeepEqual(got.sink, expected) {
			t.Fatalf("states %v, %v; want %v", got.sink, err, expected)
		}
	}
	if refused < 20 {
		t.Errorf("only %d messages were refused", refused)
	}
}

func TestPiecesThatAreMissingOrOutOfTurnAreDamage(t *testing.T) {
	app := pileApp(t)
	frames, _ := crossed(t, app, []growth{{"a", 1000, true}})
	_, log, err := pileCall(t, app, 1<<30, 100, nil, false, frames)
	if err != nil || len(log) < 10 {
		t.Fatalf("%d pieces, %v", len(log), err)
	}
	more, _ := crossed(t, app, []growth{{"b", 3, true}})
	_, other, _ := pileCall(t, app, 1<<30, 100, nil, false, more)
	at := 1 + rand.IntN(len(log)-2)
	for name, wrong := range map[string][][]byte{
		"first missing": log[1:], "last missing": log[:len(log)-1],
		"one missing": append(append([][]byte{}, log[:at]...), log[at+1:]...),
		"one twice":   append(append([][]byte{}, log[:at]...), log[at-1:]...),
		"one between": append(append(append([][]byte{}, log[:at]...), other...), log[at:]...),
	} {
		if _, _, err := pileCall(t, app, 1<<30, 100, wrong, false, frames); err == nil || !strings.HasPrefix(err.Error(), "W410") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAboveTheLimitAValueIsADeadLetter(t *testing.T) {
	app := pileApp(t)
	defer stage.LimitValues(150)()
	random := rand.New(rand.NewPCG(7, 11))
	for range 50 {
		messages := make([]growth, 1+random.IntN(8))
		for i := range messages {
			messages[i] = growth{strings.Repeat("k", 1+random.IntN(200)), random.IntN(300), true}
		}
		got := collect(t, run(t, newExecutor(t, app, sizedStage), lines(t, messages)))
		wanted := 0
		for _, g := range messages {
			if g.Size <= 150 {
				wanted++
			}
		}
		if len(got.sink) != wanted || len(got.letters) != len(messages)-wanted {
			t.Fatalf("%d values and %d dead letters of %v", len(got.sink), len(got.letters), messages)
		}
		frames, letters := crossed(t, app, messages)
		count := 0
		for rest := frames; len(rest) > 0; {
			var f frame.Frame
			var err error
			if rest, err = f.Read(rest); err != nil {
				t.Fatal(err)
			}
			count += f.Count
		}
		if count+len(letters) != len(messages) {
			t.Fatalf("%d messages crossed and %d are dead letters of %d", count, len(letters), len(messages))
		}
		for _, letter := range append(letters, got.letters...) {
			if letter.GetCode() != "C525" || !strings.Contains(letter.GetError(), "bytes; at most 150 are possible; ") {
				t.Fatalf("letter %v", letter)
			}
		}
	}
}

func TestAbove64MiBNothingEnds(t *testing.T) {
	const huge = 65 << 20
	app := pileApp(t)
	got := collect(t, run(t, newExecutor(t, app, sizedStage), lines(t, []growth{{"a", 1, true}, {"a", huge, true}, {"a", 2, true}})))
	if len(got.sink) != 2 || len(got.letters) != 1 || !strings.Contains(got.letters[0].GetError(), fmt.Sprintf("its value has %d bytes", huge)) {
		t.Errorf("%d values, letters %v", len(got.sink), got.letters)
	}
	frames, letters := crossed(t, app, []growth{{"a", huge, true}, {"b", 1, true}})
	if len(letters) != 0 {
		t.Fatalf("letters %v", letters)
	}
	first, log, err := pileCall(t, app, stage.MaxStateBytes, 4<<20, nil, false, frames)
	if err != nil || !reflect.DeepEqual(first.sink, []string{fmt.Sprint(huge), "1"}) {
		t.Fatalf("%v, %v", first, err)
	}
	for _, entry := range log {
		if len(entry) > 5<<20 {
			t.Errorf("an entry of %d bytes", len(entry))
		}
	}
	frames, _ = crossed(t, app, []growth{{"a", 5, true}})
	again, _, err := pileCall(t, app, stage.MaxStateBytes, 4<<20, log, false, frames)
	if err != nil || !reflect.DeepEqual(again.sink, []string{fmt.Sprint(huge + 5)}) {
		t.Errorf("%v, %v", again, err)
	}
}

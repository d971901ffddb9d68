package stage_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

// The tests in this file declare applications with the API of Wallaroo's own Go SDK, and run messages through them.

type mapped func(word string) interface{}

func (m mapped) Build() interface{}                   { return m }
func (m mapped) Name() string                         { return "map" }
func (m mapped) Compute(data interface{}) interface{} { return m(data.(string)) }

type gaps struct{ example.Split }

func (g gaps) Build() interface{} { return g }

func (g gaps) Compute(data interface{}) []interface{} {
	words := g.Split.Compute(data)
	for i, word := range words {
		if word == "gap" {
			words[i] = nil
		}
	}
	return words
}

// twice is a computation that returns each word with the number of words so far, and nil as a second result. It does
// not persist a word that ends with "-".
type twice struct{ name string }

func (c twice) Name() string { return c.name }

func (twice) Compute(data, state interface{}) ([]interface{}, bool) {
	word, totals := data.(string), state.(*example.Totals)
	totals.Counts["all"]++
	return []interface{}{word + strconv.FormatUint(totals.Counts["all"], 10), nil}, !strings.HasSuffix(word, "-")
}

type plain struct{}

func (plain) Encode(data interface{}) []byte { return []byte(data.(string)) }

func tcpSource(port string) application.SourceConfig {
	return application.MakeTCPSourceConfig("127.0.0.1", port, example.Lines{})
}

func tcpSink(port string) application.SinkConfig {
	return application.MakeTCPSinkConfig("127.0.0.1", port, plain{})
}

// stateless runs a stage without state steps on texts. It returns the output of each sink, by its port.
func stateless(t *testing.T, app *application.Application, nodes []*pb.Node, texts ...string) map[uint16][]string {
	t.Helper()
	nodes = append([]*pb.Node{{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE}}, nodes...)
	x := newExecutor(t, declared(t, app), &pb.Stage{Id: "s0", Nodes: nodes})
	got := map[uint16][]string{}
	for _, output := range run(t, x, framed(t, texts...)) {
		if output.Port == frame.DeadLetterPort {
			t.Errorf("there are dead letters")
		}
		for _, value := range values(t, output.Frame) {
			got[output.Port] = append(got[output.Port], string(value))
		}
	}
	return got
}

func TestNilOfADecoderIsDropped(t *testing.T) {
	app := application.MakeApplication("Nil")
	app.NewPipeline("p", tcpSource("7010")).ToSink(tcpSink("7002"))
	nodes := []*pb.Node{{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/sources/0"}, Port: 2}}
	if got := stateless(t, app, nodes, "a", "skipped", "b")[2]; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("messages are %q", got)
	}
}

func TestNilOfAComputationIsDropped(t *testing.T) {
	app := application.MakeApplication("Nil")
	odd := mapped(func(word string) interface{} {
		if len(word)%2 == 0 {
			return nil
		}
		return word
	})
	app.NewPipeline("p", tcpSource("7010")).To(odd).ToSink(tcpSink("7002"))
	nodes := []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/sources/0"}},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}
	if got := stateless(t, app, nodes, "a", "bb", "ccc")[2]; !slices.Equal(got, []string{"a", "ccc"}) {
		t.Errorf("messages are %q", got)
	}
}

func TestNilAmongSeveralResultsIsDropped(t *testing.T) {
	app := application.MakeApplication("Nil")
	app.NewPipeline("p", tcpSource("7010")).ToMulti(gaps{}).ToSink(tcpSink("7002"))
	nodes := []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION_MULTI, Inputs: []string{"0/sources/0"}},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}
	if got := stateless(t, app, nodes, "a gap b", "gap")[2]; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("messages are %q", got)
	}
}

func TestEverySinkGetsEveryMessage(t *testing.T) {
	app := application.MakeApplication("Sinks")
	app.NewPipeline("p", tcpSource("7010")).ToSinks(tcpSink("7002"), tcpSink("7003"))
	nodes := []*pb.Node{
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/sources/0"}, Port: 2},
		{Path: "0/sinks/1", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/sources/0"}, Port: 3},
	}
	got := stateless(t, app, nodes, "a", "b")
	if want := []string{"a", "b"}; !slices.Equal(got[2], want) || !slices.Equal(got[3], want) {
		t.Errorf("messages are %q", got)
	}
}

func TestABranchGetsEveryMessage(t *testing.T) {
	app := application.MakeApplication("Branch")
	shout := mapped(func(word string) interface{} { return strings.ToUpper(word) })
	fork := app.NewPipeline("p", tcpSource("7010")).ToMulti(example.Split{})
	fork.To(shout).ToSink(tcpSink("7002"))
	fork.ToSink(tcpSink("7003"))
	nodes := []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION_MULTI, Inputs: []string{"0/sources/0"}},
		{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/steps/0"}},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/1"}, Port: 2},
		{Path: "0/sinks/1", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 3},
	}
	got := stateless(t, app, nodes, "a b")
	if !slices.Equal(got[2], []string{"A", "B"}) || !slices.Equal(got[3], []string{"a", "b"}) {
		t.Errorf("messages are %q", got)
	}
}

// shared declares two pipelines whose steps share a state. The second pipeline ends with Done.
func shared() *application.Application {
	app := application.MakeApplication("Shared")
	app.NewPipeline("ask", tcpSource("7010")).
		ToStatePartitionMulti(twice{"ask"}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).ToSink(tcpSink("7002"))
	app.NewPipeline("tell", tcpSource("7011")).
		ToStatePartitionMulti(twice{"tell"}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).Done()
	return app
}

var sharedStage = &pb.Stage{Id: "s1", BucketCount: buckets, Nodes: []*pb.Node{
	{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, Port: 1, State: "totals", StatePort: 1},
	{Path: "1/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, Port: 4, State: "totals", StatePort: 1},
	{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
}}

// told makes a frame with one word for the second pipeline of shared.
func told(t *testing.T, word string) []byte {
	t.Helper()
	b := frame.Builder{Port: 4, Encoding: 17}
	b.UseKey(b.AddKey([]byte(word[:1])))
	b.UseSequence(0)
	b.Add(append([]byte{1}, word...))
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestPipelinesShareTheStateOfOneName(t *testing.T) {
	x := newExecutor(t, declared(t, shared()), sharedStage)
	got, _, bucket := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "ab"), told(t, "ax"), keyedWords(t, "ac", "b"))
	if !slices.Equal(got.sink, []string{"ab1", "ac3", "b1"}) || bucket.Keys() != 2 {
		t.Errorf("messages are %q, states %d", got.sink, bucket.Keys())
	}
}

func TestAPipelineThatIsDoneGivesNothing(t *testing.T) {
	app := declared(t, shared())
	if len(app.Pipelines[0].Sinks) != 1 || len(app.Pipelines[1].Sinks) != 0 {
		t.Fatalf("sinks are %v and %v", app.Pipelines[0].Sinks, app.Pipelines[1].Sinks)
	}
	got, changes, _ := countCall(t, newExecutor(t, app, sharedStage), state.NewBucket(), noRebuild(t), false, told(t, "ax"))
	if len(got.sink)+len(got.letters) > 0 || len(changes) != 1 {
		t.Errorf("messages are %q, changes %d", got.sink, len(changes))
	}
}

func TestWhatIsNotPersistedIsNotWritten(t *testing.T) {
	for word, want := range map[string]int{"a-": 0, "a": 1} {
		x := newExecutor(t, declared(t, shared()), sharedStage)
		if _, changes, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, word)); len(changes) != want {
			t.Errorf("%q: %d changes; want %d", word, len(changes), want)
		}
	}
}

func TestKeysOfAListAreAllOrAHint(t *testing.T) {
	keys := [][]byte{[]byte("a")}
	hint := application.MakeApplication("Hint")
	hint.NewPipeline("p", tcpSource("7010")).
		ToStatePartitionMultiWithKeys(twice{"count"}, example.TotalsBuilder{}, "totals", example.FirstLetter{}, keys).ToSink(tcpSink("7002"))
	closed := application.MakeApplication("Closed")
	closed.NewPipeline("p", tcpSource("7010")).
		ToStatePartitionMulti(twice{"count"}, example.TotalsBuilder{}, "totals", numbered{}, []uint64{7}).ToSink(tcpSink("7002"))
	nodes := []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, Port: 1, StatePort: 1},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}
	for app, want := range map[*application.Application][]string{hint: {"a1", "b1"}, closed: nil} {
		x := newExecutor(t, declared(t, app), &pb.Stage{Id: "s1", BucketCount: buckets, Nodes: nodes})
		got, _, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "a", "b"))
		if !slices.Equal(got.sink, want) || len(got.letters) != 2-len(want) {
			t.Errorf("%s: messages are %q, dead letters %d", app.ToJson()[:60], got.sink, len(got.letters))
		}
	}
}

func TestAKeyThatLeavesTheListIsADeadLetterAlthoughItHasAState(t *testing.T) {
	nodes := []*pb.Node{{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, Port: 1, StatePort: 1}}
	letters, bucket := []int{}, state.NewBucket()
	for _, key := range []string{"a", "b"} {
		app := application.MakeApplication("Closed")
		app.NewPipeline("p", tcpSource("7010")).
			ToStatePartitionMultiWithKeys(twice{"count"}, example.TotalsBuilder{}, "totals", example.FirstLetter{}, [][]byte{[]byte(key)}).
			ToSink(tcpSink("7002"))
		closed := declared(t, app)
		for step := range closed.Steps() {
			step.State.Closed = true
		}
		x := newExecutor(t, closed, &pb.Stage{Id: "s1", BucketCount: buckets, Nodes: nodes})
		got, _, after := countCall(t, x, bucket, noRebuild(t), false, keyedWords(t, "a"))
		letters, bucket = append(letters, len(got.letters)), after
	}
	if !slices.Equal(letters, []int{0, 1}) {
		t.Errorf("dead letters are %d", letters)
	}
}

type numbered struct{}

func (numbered) Partition(data interface{}) uint64 { return uint64(len(data.(string))) }

var _ wa.PartitionFunctionU64 = numbered{}

func TestKeysOfNumbersHaveEightBytes(t *testing.T) {
	app := application.MakeApplication("Numbers")
	app.NewPipeline("p", tcpSource("7010")).ToMulti(example.Split{}).
		ToStatePartitionMulti(twice{"count"}, example.TotalsBuilder{}, "totals", numbered{}).ToSink(tcpSink("7002"))
	x := newExecutor(t, declared(t, app), splitStage)
	var keys []string
	for _, message := range readKeyed(t, run(t, x, framed(t, "a bb")), 1) {
		keys = append(keys, message.key)
	}
	if !slices.Equal(keys, []string{"\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x02"}) {
		t.Errorf("keys are %q", keys)
	}
}

package stream_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	pb "wallarooapi/internal/workerpb"
	"wallarooapi/stream"
)

type purchase struct {
	Item   string
	Amount int
}

func double(_ context.Context, n int) (int, error) {
	if n == 0 {
		return 0, stream.ErrSkip
	}
	if n == 13 {
		return 0, errors.New("no luck")
	}
	return 2 * n, nil
}

func describePurchase(_ context.Context, p purchase) ([]string, error) {
	return slices.Repeat([]string{p.Item}, p.Amount), nil
}

func sum(_ context.Context, n int64, total *int64) (int64, error) {
	*total += n
	return *total, nil
}

func maths() *stream.Library {
	library := stream.NewLibrary()
	stream.OfferMapState(library, "total", sum, "int64", "int64")
	stream.OfferMap(library, "double", double, "int64", "int64")
	stream.OfferFlatMap(library, "purchase", describePurchase, "json", "string")
	stream.OfferFlatMapState(library, "totals", func(ctx context.Context, n int64, total *int64) ([]int64, error) {
		after, err := sum(ctx, n, total)
		return []int64{n, after}, err
	}, "int64", "int64")
	return library
}

// hosted compiles a stage of a program that was declared.
func hosted(t *testing.T, text string, nodes ...*pb.Node) (*stage.Executor, error) {
	t.Helper()
	result, ok := declaration.Lookup(text)
	if !ok || len(result.Found) > 0 {
		t.Fatalf("the declaration is wrong: %v", result.Found)
	}
	return stage.New(result.Application, &pb.Stage{Id: "s", BucketCount: 4, Nodes: nodes})
}

func crossing(component, in, out string, kind pb.NodeKind) []*pb.Node {
	return []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_RECEIVE, Port: 7, Codec: in, Keys: true, Timestamps: true},
		{Path: "0/steps/0", Kind: kind, Inputs: []string{"0/sources/0"}, Component: component},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_SEND, Inputs: []string{"0/steps/0"}, Port: 8, Codec: out, Keys: true, Timestamps: true},
	}
}

// numbered returns a frame for a RECEIVE or a state step. Its messages have keys, sequences from 10 and times from 100.
func numbered(t *testing.T, port uint16, keys []string, values ...string) []byte {
	t.Helper()
	b := frame.Builder{Port: port, TimestampMs: 100}
	for i, value := range values {
		b.UseKey(b.AddKey([]byte(keys[i])))
		b.UseSequence(uint64(10 + i))
		b.UseTimestamp(int64(100 + i))
		b.Add([]byte(value))
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func int64Text(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// sent returns the messages of a port as texts with key, sequence, time and value.
func sent(t *testing.T, outputs []stage.OutputFrame, port uint16) (all []string) {
	t.Helper()
	values := read(t, outputs, port)
	for _, output := range outputs {
		var f frame.Frame
		if _, err := f.Read(output.Frame); err != nil {
			t.Fatal(err)
		}
		for i := 0; output.Port == port && i < f.Count; i++ {
			all = append(all, fmt.Sprintf("%s %d %d %x", f.Keys[f.KeyIndexes.At(i)], f.SequenceOf(i), f.TimestampOf(i), values[len(all)]))
		}
	}
	return all
}

func TestMessagesCrossWithKeySequenceAndTime(t *testing.T) {
	x, err := hosted(t, maths().ToJson(), crossing("double", "int64", "int64", pb.NodeKind_NODE_KIND_COMPUTATION)...)
	if err != nil {
		t.Fatal(err)
	}
	outputs := play(t, x, numbered(t, 7, []string{"a", "a", "b", "b", "c"}, int64Text(1), int64Text(0), "short", int64Text(13), int64Text(-4)))
	want := []string{"a 10 100 0000000000000002", "c 14 104 fffffffffffffff8"}
	if got := sent(t, outputs, 8); !slices.Equal(got, want) {
		t.Errorf("messages are %q; want %q", got, want)
	}
	letters := []string{`C505 0/sources/0: it is not in codec "int64"; 5 bytes; a number has 8`, "C501 double: no luck"}
	if got := read(t, outputs, frame.DeadLetterPort); !slices.Equal(got, letters) {
		t.Errorf("dead letters are %q; want %q", got, letters)
	}
	for _, count := range x.Counts() {
		if count.GetMessagesIn() > 0 && (count.GetMessagesIn() != 4 || count.GetMessagesOut() != 2 || count.GetPath() != "0/steps/0") {
			t.Errorf("counts are %v", count)
		}
	}
}

func TestValuesAreReadAsTheFunctionTakesThem(t *testing.T) {
	x, err := hosted(t, maths().ToJson(), crossing("purchase", "json", "string", pb.NodeKind_NODE_KIND_COMPUTATION_MULTI)...)
	if err != nil {
		t.Fatal(err)
	}
	outputs := play(t, x, numbered(t, 7, []string{"", "", "", ""}, `{"item":"tea","amount":2}`, `{"Amount":"two"}`, "null", `{}`))
	if got := read(t, outputs, 8); !slices.Equal(got, []string{"tea", "tea"}) {
		t.Errorf("messages are %q", got)
	}
	if got := read(t, outputs, frame.DeadLetterPort); len(got) != 1 || !strings.HasPrefix(got[0], `C505 0/sources/0: it is not in codec "json"; json: cannot unmarshal`) {
		t.Errorf("dead letters are %q", got)
	}
}

func TestAStateOfALibraryTakesTheCodec(t *testing.T) {
	for component, kind := range map[string]pb.NodeKind{"total": pb.NodeKind_NODE_KIND_STATE_COMPUTATION, "totals": pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI} {
		x, err := hosted(t, maths().ToJson(), &pb.Node{
			Path: "0/steps/2", Kind: kind, Port: 3, State: "total", StatePort: 3, Component: component, Codec: "int64",
		}, &pb.Node{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_SEND, Inputs: []string{"0/steps/2"}, Port: 9, Codec: "int64", Keys: true})
		if err != nil {
			t.Fatal(err)
		}
		frames := []stage.OutputFrame{{Frame: numbered(t, 3, []string{"a", "a", "b"}, int64Text(5), int64Text(6), "seven")}}
		outputs := playState(t, x, frames)
		want := []string{int64Text(5), int64Text(11)}
		if component == "totals" {
			want = []string{int64Text(5), int64Text(5), int64Text(6), int64Text(11)}
		}
		if got := read(t, outputs, 9); !slices.Equal(got, want) {
			t.Errorf("%s: messages are %q; want %q", component, got, want)
		}
		if got := read(t, outputs, frame.DeadLetterPort); len(got) != 1 || !strings.HasPrefix(got[0], "C505 "+component) {
			t.Errorf("%s: dead letters are %q", component, got)
		}
	}
}

// user is an application that uses components of the program maths.
func user(input string) *stream.Application {
	other := wa.OtherProgram("maths", "./maths")
	app := stream.New("User")
	numbers := stream.From(app, "numbers", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Int64.Decode))
	doubled := stream.Through[int](numbers, other.Computation("double", "int64", "int64"))
	keyed := stream.KeyBy(doubled, "parity", func(n int) string { return fmt.Sprint(n % 4) })
	totals := stream.Through[int64](keyed, other.StateComputation("total", input, "int64"))
	totals.To(stream.TCPSink("127.0.0.1:7002", stream.Int64.Encode))
	return app
}

func TestAProgramNamesComponentsOfAnother(t *testing.T) {
	text := user("int64").ToJson()
	result, _ := declaration.Lookup(text)
	if result.Programs["maths"] != "./maths" || len(result.Programs) != 1 {
		t.Errorf("programs are %v", result.Programs)
	}
	for _, want := range []string{
		`"worker": "maths",
          "component": "double"`, `"name": "total",
            "codec": "native",
            "key": {
              "kind": "message"
            }`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\ndoes not have\n%s", text, want)
		}
	}
	if strings.Count(text, `"codec": "int64"`) != 4 || strings.Contains(text, "Through") {
		t.Errorf("codecs or components are wrong in\n%s", text)
	}
}

func TestMessagesGoToAnotherProgramAndComeBack(t *testing.T) {
	app := user("int64").ToJson()
	x, err := hosted(t, app,
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SEND, Inputs: []string{"0/sources/0"}, Port: 8, Codec: "int64"})
	if err != nil {
		t.Fatal(err)
	}
	outputs := play(t, x, lines(t, int64Text(3), int64Text(4)))
	if got := read(t, outputs, 8); !slices.Equal(got, []string{int64Text(3), int64Text(4)}) {
		t.Errorf("messages are %q", got)
	}
	x, err = hosted(t, app,
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_RECEIVE, Port: 9, Codec: "int64"},
		&pb.Node{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_KEY_BY, Inputs: []string{"0/steps/0"}},
		&pb.Node{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/1"}, Port: 1, Codec: "int64", Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	outputs = play(t, x, numbered(t, 9, []string{"", "", "x"}, int64Text(6), int64Text(8), ""))
	got := sent(t, outputs, 1)
	slices.Sort(got)
	if want := []string{"0 11 101 0000000000000008", "2 10 100 0000000000000006"}; !slices.Equal(got, want) {
		t.Errorf("messages are %q; want %q", got, want)
	}
	if got := read(t, outputs, frame.DeadLetterPort); len(got) != 1 || !strings.HasPrefix(got[0], "C505 double") {
		t.Errorf("dead letters are %q", got)
	}
}

func TestMessagesMoveToAnotherStageOfTheSameProgram(t *testing.T) {
	words := func() string {
		app := stream.New("Words")
		from := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
		made := stream.Map(from, "made", func(_ context.Context, text string) (purchase, error) { return purchase{text, len(text)}, nil })
		stream.Map(made, "name", func(_ context.Context, p purchase) (string, error) { return p.Item, nil }).
			To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
		return app.ToJson()
	}()
	first, err := hosted(t, words,
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/sources/0"}},
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_SEND, Inputs: []string{"0/steps/0"}, Port: 8})
	if err != nil {
		t.Fatal(err)
	}
	second, err := hosted(t, words,
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_RECEIVE, Port: 8},
		&pb.Node{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/steps/0"}},
		&pb.Node{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/1"}, Port: 2})
	if err != nil {
		t.Fatal(err)
	}
	between := play(t, first, lines(t, "tea", "milk"))
	if len(between) != 1 || between[0].Port != 8 || between[0].Bucket != -1 {
		t.Fatalf("outputs are %v", between)
	}
	if got := read(t, play(t, second, between[0].Frame), 2); !slices.Equal(got, []string{"tea", "milk"}) {
		t.Errorf("messages are %q", got)
	}
}

func TestStagesThatALibraryCannotRun(t *testing.T) {
	for want, nodes := range map[string][]*pb.Node{
		`W403 this worker has no COMPUTATION "halve" at 0/steps/0`:                   crossing("halve", "int64", "int64", pb.NodeKind_NODE_KIND_COMPUTATION),
		`W403 this worker has no COMPUTATION_MULTI "double" at 0/steps/0`:            crossing("double", "int64", "int64", pb.NodeKind_NODE_KIND_COMPUTATION_MULTI),
		`W410 0/steps/0 has codec "xml"; expected one of "bytes", "string", "int64"`: crossing("double", "int64", "xml", pb.NodeKind_NODE_KIND_COMPUTATION),
		`W410 0/sources/0 has codec "xml"; expected one of "bytes", "string"`:        crossing("double", "xml", "int64", pb.NodeKind_NODE_KIND_COMPUTATION),
	} {
		if _, err := hosted(t, maths().ToJson(), nodes...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	x, err := hosted(t, maths().ToJson(), crossing("double", "int64", "int64", pb.NodeKind_NODE_KIND_COMPUTATION)...)
	if err != nil {
		t.Fatal(err)
	}
	native := frame.Builder{Port: 7, Encoding: 17}
	native.Add([]byte{1, 'a'})
	bytes, err := native.Frame()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Run(bytes, nil); err == nil || !strings.Contains(err.Error(), "W410 a frame is damaged; a frame for 0/sources/0 has values of encoding 17") {
		t.Errorf("a frame in the worker's own form: %v", err)
	}
}

func TestMistakesWithOtherPrograms(t *testing.T) {
	app := func(component *wa.RemoteComponent) error {
		app := stream.New("Wrong")
		numbers := stream.From(app, "numbers", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Int64.Decode))
		stream.Through[int64](numbers, component).To(stream.TCPSink("127.0.0.1:7002", stream.Int64.Encode))
		return app.Check()
	}
	library := func(offer func(l *stream.Library)) error {
		l := stream.NewLibrary()
		offer(l)
		result, _ := declaration.Lookup(l.ToJson())
		return diagnostic.Error(result.Found)
	}
	for want, err := range map[string]error{
		`T207 OtherProgram: parameter worker is "main"; expected a name other than "main"`:      app(wa.OtherProgram("main", "a.py").Computation("c", "int64", "int64")),
		`T207 OtherProgram: parameter target is ""; expected a file or directory`:               app(wa.OtherProgram("a", "").Computation("c", "int64", "int64")),
		`T207 Through: parameter input is "xml"; expected one of "bytes", "string"`:             app(wa.OtherProgram("a", "b").Computation("c", "xml", "int64")),
		`T210 component name "" is not usable`:                                                  app(wa.OtherProgram("a", "b").Computation("", "int64", "int64")),
		`T262 step "c": output is int64, which codec "string" cannot write`:                     app(wa.OtherProgram("a", "b").ComputationMulti("c", "int64", "string")),
		`T229 step "c" keeps state by the key of messages; messages from "numbers" have no key`: app(wa.OtherProgram("a", "b").StateComputationMulti("c", "int64", "int64")),
		`T261 step "total" takes messages in codec "json"; "parity" gives "int64"`:              secondUse(),
		`T207 library: parameter components is empty`:                                           library(func(*stream.Library) {}),
		`T207 OfferMap: parameter components is "double" again`: library(func(l *stream.Library) {
			stream.OfferMap(l, "double", double, "int64", "int64")
			stream.OfferMap(l, "double", double, "int64", "int64")
		}),
		`T262 step "double": input is int, which codec "bytes" cannot write`: library(func(l *stream.Library) {
			stream.OfferMap(l, "double", double, "bytes", "int64")
		}),
		`T207 OfferMap: parameter function is nil`: library(func(l *stream.Library) {
			stream.OfferMap[int, int](l, "none", nil, "int64", "int64")
		}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "library_test.go:") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// secondUse is an application in which two programs get the same messages in different codecs.
func secondUse() error {
	other := wa.OtherProgram("maths", "./maths")
	app := stream.New("User")
	numbers := stream.From(app, "numbers", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Int64.Decode))
	keyed := stream.KeyBy(numbers, "parity", func(n int64) string { return fmt.Sprint(n % 4) })
	stream.Through[int64](keyed, other.Computation("double", "int64", "int64")).To(stream.TCPSink("127.0.0.1:7002", stream.Int64.Encode))
	stream.Through[int64](keyed, other.StateComputation("total", "json", "int64")).To(stream.TCPSink("127.0.0.1:7003", stream.Int64.Encode))
	return app.Check()
}

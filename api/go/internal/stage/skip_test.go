package stage_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/flight"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

// watched opens the record of the message in flight on a file, and returns it with a function that reads from the file
// the index of the call and the message in flight.
func watched(t *testing.T) (*flight.File, func() [2]uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flight")
	if err := os.WriteFile(path, make([]byte, flight.Bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := flight.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = record.Close() })
	return record, func() [2]uint64 {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return [2]uint64{binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])}
	}
}

func TestSkippedMessagesAreDeadLettersOfTheSource(t *testing.T) {
	x := newExecutor(t, wordCount(t), splitStage)
	x.Begin(3, []*pb.Skip{{Ordinal: 1, Code: "C508", Reason: "it ended"}, {Ordinal: 3, Code: "C509", Reason: "it hung"}})
	got := collect(t, run(t, x, append(framed(t, "a", "b"), framed(t, "c", "d")...)))
	if len(got.buckets) == 0 || len(got.letters) != 2 {
		t.Fatalf("%d buckets, dead letters %v", len(got.buckets), got.letters)
	}
	for i, want := range []struct{ code, reason, input string }{{"C508", "it ended", "b"}, {"C509", "it hung", "d"}} {
		letter := got.letters[i]
		if letter.GetCode() != want.code || letter.GetError() != want.reason || string(letter.GetInput()) != want.input ||
			letter.GetPath() != "0/sources/0" || letter.GetStep() != "Words" || letter.GetTraceback() != "" || letter.GetSequence() != 101 {
			t.Errorf("dead letter %d says %v", i, letter)
		}
	}
	x.Begin(4, nil)
	if again := collect(t, run(t, x, framed(t, "a", "b"))); len(again.letters) != 0 {
		t.Errorf("the next call has dead letters %v", again.letters)
	}
}

func TestSkippedMessagesLeaveTheStateAlone(t *testing.T) {
	x := newExecutor(t, wordCount(t), countStage)
	_, log, bucket := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "bar", "a"))
	rebuild := func() (*state.Bucket, error) {
		loader := x.NewLoader()
		for _, entry := range log {
			if err := loader.Load(entry); err != nil {
				return nil, err
			}
		}
		return loader.Bucket(), nil
	}
	x.Begin(1, []*pb.Skip{{Ordinal: 1, Code: "C508", Reason: "it ended"}, {Ordinal: 3, Code: "C509", Reason: "it hung"}})
	got, _, bucket := countCall(t, x, bucket, rebuild, false, keyedWords(t, "bar", "bar"), keyedWords(t, "boom", "cold", "a"))
	if want := "bar => 2\na => 2\n"; strings.Join(got.sink, "") != want {
		t.Errorf("output is %q; want %q", got.sink, want)
	}
	codes := []string{}
	for _, letter := range got.letters {
		codes = append(codes, letter.GetCode()+" "+letter.GetPath()+" "+string(letter.GetKey())+" "+letter.GetPreview())
	}
	want := "C508 0/steps/1 b bar, C509 0/steps/1 c cold, C501 0/steps/1 b boom"
	if found := strings.Join(codes, ", "); found != want {
		t.Errorf("dead letters are %q; want %q", found, want)
	}
	if bucket.Table(1).Get([]byte("c")) != nil {
		t.Error("a skipped message gave its key a state")
	}
	if totals := bucket.Table(1).Get([]byte("b")).Value.(*example.Totals); totals.Counts["bar"] != 2 {
		t.Errorf("the state of b is %v", totals.Counts)
	}
}

type order struct {
	Item string
	At   time.Time
}

// talkative has methods for its display that must not be called: one blocks, and one panics.
type talkative struct {
	Text string
	When time.Time
	Next *talkative
}

func (*talkative) String() string { select {} }

func (*talkative) MarshalJSON() ([]byte, error) { panic("a skipped message was asked for its text") }

// coded has methods that serialize it.
type coded struct{ at int }

func (coded) GobEncode() ([]byte, error) { return []byte("!"), nil }

func (c *coded) GobDecode([]byte) error { c.at, codedReads = 1, codedReads+1; return nil }

var codedReads int

func TestSkippedMessagesAreShownAsOthers(t *testing.T) {
	wa.RegisterType(order{})
	wa.RegisterType(talkative{})
	wa.RegisterType(coded{})
	text, noon := "bar", time.Unix(0, 0).UTC()
	values := []any{order{"first", noon}, &text, order{"second", noon}, uint8(7), &talkative{"x", noon, &talkative{"y", noon, nil}}, coded{1}}
	b, encoder := frame.Builder{Port: 1, Encoding: codec.Native}, codec.NewEncoder()
	key := b.AddKey([]byte("b"))
	skips := []*pb.Skip{}
	for i, value := range values {
		data, err := encoder.Append(nil, value)
		if err != nil {
			t.Fatal(err)
		}
		b.UseKey(key)
		b.UseSequence(uint64(i))
		b.Add(data)
		skips = append(skips, &pb.Skip{Ordinal: uint64(i), Code: "C508", Reason: "it ended"})
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	x := newExecutor(t, wordCount(t), countStage)
	x.Begin(1, skips)
	got, _, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, bytes)
	want := []string{`{"At":"1970-01-01T00:00:00Z","Item":"first"}`, "bar", `{"At":"1970-01-01T00:00:00Z","Item":"second"}`, "7",
		`{"Next":{"Next":null,"Text":"y","When":"1970-01-01T00:00:00Z"},"Text":"x","When":"1970-01-01T00:00:00Z"}`, ""}
	if codedReads != 0 {
		t.Error("a method of the program read a skipped message")
	}
	if len(got.letters) != len(want) {
		t.Fatalf("%d dead letters: %v", len(got.letters), got.letters)
	}
	for i, letter := range got.letters {
		if want[i] != "" && letter.GetPreview() != want[i] {
			t.Errorf("the message is shown as %q; want %q", letter.GetPreview(), want[i])
		}
		read, err := codec.NewDecoder().Decode(byte(letter.GetEncoding()), letter.GetInput())
		if err != nil || !reflect.DeepEqual(read, values[i]) {
			t.Errorf("%v comes back as %v, %v", values[i], read, err)
		}
	}
}

// observed counts words, and calls look before each word.
type observed struct {
	example.CountWords
	look func()
}

func (o *observed) Compute(data, state interface{}) (interface{}, bool) {
	o.look()
	return o.CountWords.Compute(data, state)
}

func TestTheMessageAtWorkIsNoted(t *testing.T) {
	record, atWork := watched(t)
	var seen [][2]uint64
	counting := &observed{look: func() { seen = append(seen, atWork()) }}
	app := application.MakeApplication("Observed")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(counting, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	x := newExecutor(t, declared(t, app), countStage)
	x.Watch(record)
	x.Begin(5, nil)
	rebuild := func() (*state.Bucket, error) {
		seen = append(seen, atWork())
		return state.NewBucket(), nil
	}
	countCall(t, x, state.NewBucket(), rebuild, false, keyedWords(t, "a", "boom"), keyedWords(t, "c"))
	seen = append(seen, atWork())
	want := [][2]uint64{{5, 1}, {5, 3}, {5, 2}, {5, 0}, {5, 1}, {5, 3}, {5, 2}, {5, 0}} // "c" has the sequence of "a"
	if len(seen) != len(want) {
		t.Fatalf("seen: %v; want %v", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("seen: %v; want %v", seen, want)
		}
	}
}

// noted is a state with methods that serialize it. They call look.
type noted struct{ Total int }

var look = func(string) {}

func (n *noted) GobEncode() ([]byte, error) {
	look("write")
	return []byte{byte(n.Total)}, nil
}

func (n *noted) GobDecode(data []byte) error {
	look("read")
	n.Total = int(data[0])
	return nil
}

type notedBuilder struct{}

func (*notedBuilder) Build() any { return &noted{} }

type addNoted struct{}

func (*addNoted) Name() string { return "add" }

func (*addNoted) Compute(data, state any) (any, bool) {
	look("run")
	state.(*noted).Total++
	return data, true
}

func notedExecutor(t *testing.T) *stage.Executor {
	t.Helper()
	a := application.MakeApplication("Noted")
	a.NewPipeline("noted", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToStatePartition(&addNoted{}, &notedBuilder{}, "notes", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", plain{}))
	return newExecutor(t, declared(t, a), &pb.Stage{Id: "s1", BucketCount: 1, FrameBytes: 1000, Nodes: []*pb.Node{
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: 1, State: "notes", StatePort: 1},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}})
}

// notedFrame makes a frame of two messages whose own methods read them.
func notedFrame(t *testing.T, sequence uint64) []byte {
	t.Helper()
	encoder, b := codec.NewEncoder(), frame.Builder{Port: 1, Encoding: codec.Native}
	for i := range 2 {
		value, err := encoder.Append(nil, &noted{i})
		if err != nil {
			t.Fatal(err)
		}
		b.UseKey(b.AddKey([]byte("a")))
		b.UseSequence(sequence)
		b.Add(value)
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestSkippedMessagesAreReadByNoUserCode(t *testing.T) {
	x := notedExecutor(t)
	var skips []*pb.Skip
	for ordinal := range uint64(4) {
		skips = append(skips, &pb.Skip{Ordinal: ordinal, Code: "C508", Reason: "it ended"})
	}
	t.Cleanup(func() { look = func(string) {} })
	for _, sequences := range [][2]uint64{{0, 1}, {1, 0}} {
		frames := [][]byte{notedFrame(t, sequences[0]), notedFrame(t, sequences[1])}
		var seen []string
		look = func(what string) { seen = append(seen, what) }
		x.Begin(1, skips)
		got, _, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, frames...)
		if len(got.letters) != 4 || len(seen) > 0 {
			t.Errorf("%d dead letters, user code: %v; want 4 and none", len(got.letters), seen)
		}
	}
}

func TestWhoWritesAndReadsStatesIsNoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flight")
	if err := os.WriteFile(path, make([]byte, flight.Bytes+flight.NoteBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := flight.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = record.Close() })
	var seen []string
	look = func(what string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		message := binary.LittleEndian.Uint64(data[8:])
		note, _, _ := strings.Cut(string(data[flight.Bytes:]), "\x00")
		if message == 1<<62 {
			seen = append(seen, what+" outside: "+note)
		} else {
			seen = append(seen, fmt.Sprintf("%s at %d", what, message))
		}
	}
	t.Cleanup(func() { look = func(string) {} })
	x := notedExecutor(t)
	x.Watch(record)
	seen = nil // what the check of the types has written and read
	x.Begin(6, nil)
	_, log, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "aa"))
	x.Careful(true)
	x.Begin(7, nil)
	loader := x.NewLoader()
	for _, entry := range log {
		if err := loader.Load(entry); err != nil {
			t.Fatal(err)
		}
	}
	countCall(t, x, loader.Bucket(), noRebuild(t), false, keyedWords(t, "aa"))
	want := []string{
		"run at 1", "write outside: ",
		`read outside: read the state of step "add", key "a"`,
		"write at 1", "run at 1", "write at 1", `write outside: wrote the state of step "add", key "a"`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen:\n%s\nexpected:\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

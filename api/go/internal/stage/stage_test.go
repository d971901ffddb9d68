package stage_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	wa "wallarooapi"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

func letterOf(t testing.TB, value []byte) *pb.DeadLetter {
	t.Helper()
	letter := &pb.DeadLetter{}
	if err := proto.Unmarshal(value, letter); err != nil {
		t.Fatal(err)
	}
	return letter
}

func TestSplitSendsWordsToTheBucketsOfTheirKeys(t *testing.T) {
	x := newExecutor(t, wordCount(t), splitStage)
	got := collect(t, run(t, x, framed(t, "a b", "skipped", "a c")))
	if len(got.letters) != 0 {
		t.Fatalf("dead letters: %v", got.letters)
	}
	seen := map[string][]uint64{}
	for bucket, frames := range got.buckets {
		var f frame.Frame
		if _, err := f.Read(frames[0]); err != nil {
			t.Fatal(err)
		}
		for i := range f.Count {
			key := string(f.Keys[f.KeyIndexes.At(i)])
			seen[key] = append(seen[key], f.SequenceOf(i))
		}
		if f.Flags != frame.FlagKeys|frame.FlagSequences || f.Port != 1 || f.TimestampOf(0) != 1234 {
			t.Errorf("bucket %d: header %+v", bucket, f.Header)
		}
	}
	if want := []uint64{100, 102}; len(seen["a"]) != 2 || seen["a"][0] != want[0] || seen["a"][1] != want[1] {
		t.Errorf("sequences of a are %v; want %v", seen["a"], want)
	}
	if len(seen["b"]) != 1 || len(seen["c"]) != 1 {
		t.Errorf("keys are %v", seen)
	}
}

func TestFailuresBecomeDeadLetters(t *testing.T) {
	x := newExecutor(t, wordCount(t), splitStage)
	letters := collect(t, run(t, x, framed(t, "undecodable", "explode", "a  b"))).letters
	if len(letters) != 3 {
		t.Fatalf("%d dead letters; want 3", len(letters))
	}
	want := []struct{ code, path, errorText, input string }{
		{"C505", "0/sources/0", "cannot decode", "undecodable"},
		{"C501", "0/steps/0", "cannot split", "\x01explode"},
		{"C501", "0/steps/1", "slice bounds out of range", "\x01"},
	}
	for i, w := range want {
		l := letters[i]
		if l.GetCode() != w.code || l.GetPath() != w.path || !strings.Contains(l.GetError(), w.errorText) || string(l.GetInput()) != w.input {
			t.Errorf("letter %d is %v; want %v", i, l, w)
		}
		if l.GetSequence() != uint64(100+i) || l.GetPort() != 0 || l.GetTimestampMs() != 1234 || l.GetHasKey() {
			t.Errorf("letter %d says %v", i, l)
		}
	}
}

// countCall runs frames in one bucket call. It returns the outputs, the entries of the state log, and the bucket.
func countCall(t *testing.T, x *stage.Executor, bucket *state.Bucket, rebuild func() (*state.Bucket, error), whole bool, frames ...[]byte) (*collected, [][]byte, *state.Bucket) {
	t.Helper()
	call := x.NewCall(bucket, rebuild)
	if err := call.Run(frames...); err != nil {
		t.Fatal(err)
	}
	outputs, changes, bucket, err := call.Finish(whole)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, outputs), changes, bucket
}

// keyedWords makes a frame of words for the counting stage, with their first letters as keys.
func keyedWords(t testing.TB, words ...string) []byte {
	t.Helper()
	b := frame.Builder{Port: 1, Encoding: 17}
	keys := map[string]uint32{}
	for i, word := range words {
		key, ok := keys[word[:1]]
		if !ok {
			key = b.AddKey([]byte(word[:1]))
			keys[word[:1]] = key
		}
		b.UseKey(key)
		b.UseSequence(uint64(i))
		b.Add(append([]byte{1}, word...))
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func noRebuild(t *testing.T) func() (*state.Bucket, error) {
	return func() (*state.Bucket, error) {
		t.Error("the state was asked for once more")
		return state.NewBucket(), nil
	}
}

func TestStateSurvivesThroughItsLog(t *testing.T) {
	for _, own := range []bool{false, true} {
		restore := example.SetSerialize(own)
		x := newExecutor(t, wordCount(t), countStage)
		words := func(texts ...string) []byte { return keyedWords(t, texts...) }
		got, first, bucket := countCall(t, x, state.NewBucket(), noRebuild(t), false, words("a", "b", "a"), words("a"))
		if want := "a => 1\na => 2\nb => 1\na => 3\n"; strings.Join(got.sink, "") != want {
			t.Errorf("output is %q; want %q", got.sink, want)
		}
		_, second, bucket := countCall(t, x, bucket, noRebuild(t), false, words("b"))
		loader := x.NewLoader()
		for _, entry := range append(first, second...) {
			if err := loader.Load(entry); err != nil {
				t.Fatal(err)
			}
		}
		if loader.Bucket().Keys() != 2 || bucket.Keys() != 2 || loader.Bucket().Bytes() != bucket.Bytes() {
			t.Errorf("loaded %d keys of %d bytes; live are %d of %d", loader.Bucket().Keys(), loader.Bucket().Bytes(), bucket.Keys(), bucket.Bytes())
		}
		got, changes, _ := countCall(t, x, loader.Bucket(), noRebuild(t), true, words("a", "b"))
		if want := "a => 4\nb => 3\n"; strings.Join(got.sink, "") != want {
			t.Errorf("output is %q; want %q", got.sink, want)
		}
		if len(changes) != 1 || len(values(t, changes[0])) != 2 {
			t.Errorf("a snapshot has %d frames", len(changes))
		}
		restore()
	}
}

func TestFailuresLeaveTheStateOfTheKeyAlone(t *testing.T) {
	x := newExecutor(t, wordCount(t), countStage)
	_, log, bucket := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "bar", "a"))
	reloads := 0
	rebuild := func() (*state.Bucket, error) {
		reloads++
		loader := x.NewLoader()
		for _, entry := range log {
			if err := loader.Load(entry); err != nil {
				return nil, err
			}
		}
		return loader.Bucket(), nil
	}
	got, _, bucket := countCall(t, x, bucket, rebuild, false, keyedWords(t, "bar", "boom"), keyedWords(t, "bar", "boomerang", "cold", "a"))
	if want := "bar => 2\nbar => 3\ncold => 1\na => 2\n"; strings.Join(got.sink, "") != want {
		t.Errorf("output is %q; want %q", got.sink, want)
	}
	if reloads != 1 || len(got.letters) != 2 {
		t.Fatalf("%d reloads and %d dead letters; want 1 and 2", reloads, len(got.letters))
	}
	letter := got.letters[1]
	if string(letter.GetKey()) != "b" || !letter.GetHasKey() || letter.GetCode() != "C501" || letter.GetPreview() != "boomerang" || letter.GetPort() != 65535 {
		t.Errorf("the dead letter says %v", letter)
	}
	if !strings.Contains(letter.GetTraceback(), "example.CountWords") {
		t.Errorf("traceback is %q", letter.GetTraceback())
	}
	totals := bucket.Table(1).Get([]byte("b")).Value.(*example.Totals)
	if len(totals.Counts) != 1 || totals.Counts["bar"] != 3 {
		t.Errorf("the state of b is %v", totals.Counts)
	}
}

func TestANewKeyThatFailsHasNoState(t *testing.T) {
	x := newExecutor(t, wordCount(t), countStage)
	fresh := func() (*state.Bucket, error) { return state.NewBucket(), nil }
	got, changes, bucket := countCall(t, x, state.NewBucket(), fresh, false, keyedWords(t, "boom", "a"))
	if bucket.Keys() != 1 || len(got.letters) != 1 || len(changes) != 1 || len(values(t, changes[0])) != 1 {
		t.Errorf("%d keys, %d dead letters, %d changes", bucket.Keys(), len(got.letters), len(changes))
	}
}

func TestCounts(t *testing.T) {
	x := newExecutor(t, wordCount(t), splitStage)
	run(t, x, framed(t, "a b", "explode"))
	counts := map[string]*pb.StepCount{}
	for _, count := range x.Counts() {
		counts[count.GetPath()] = count
	}
	source, split := counts["0/sources/0"], counts["0/steps/0"]
	if source.GetMessagesIn() != 2 || source.GetMessagesOut() != 2 || split.GetMessagesIn() != 2 || split.GetMessagesOut() != 2 || split.GetDeadLetters() != 1 {
		t.Errorf("counts are %v", counts)
	}
	if again := x.Counts(); len(again) != 0 {
		t.Errorf("counted twice: %v", again)
	}
}

func TestUnknownNodesAreRefused(t *testing.T) {
	for _, node := range []*pb.Node{
		{Path: "0/sources/1", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION},
		{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_COMPUTATION},
		{Path: "0/sinks/7", Kind: pb.NodeKind_NODE_KIND_SINK},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/9"}},
	} {
		_, err := stage.New(wordCount(t), &pb.Stage{Nodes: []*pb.Node{node}})
		if err == nil || !strings.HasPrefix(err.Error(), "W403 ") {
			t.Errorf("%v: error is %v; want W403", node, err)
		}
	}
}

func TestDamagedFramesEndTheCall(t *testing.T) {
	x := newExecutor(t, wordCount(t), splitStage)
	whole := framed(t, "a b")
	broken := append([]byte{}, whole...)
	broken[len(broken)-1] ^= 1
	short, err := frame.WriteFramed(0, 0, 0, 1, []byte{0, 0, 0, 9, 'x'})
	if err != nil {
		t.Fatal(err)
	}
	for _, frames := range [][]byte{broken, whole[:45], short, keyedWords(t, "a")} {
		err := x.Run(frames, func(uint16, int32, []byte) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), "W410 ") {
			t.Errorf("error is %v; want W410", err)
		}
	}
}

func TestAMessageThatLeavesAStateWithoutBytesIsADeadLetter(t *testing.T) {
	defer example.SetSerialize(true)()
	serialize := wa.Serialize
	wa.Serialize = func(value any) []byte {
		if totals, ok := value.(*example.Totals); ok && totals.Counts["stain"] > 0 {
			panic("this state is stained")
		}
		return serialize(value)
	}
	x := newExecutor(t, wordCount(t), countStage)
	_, log, bucket := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "soap", "a"))
	reload := func() (*state.Bucket, error) {
		loader := x.NewLoader()
		for _, entry := range log {
			if err := loader.Load(entry); err != nil {
				return nil, err
			}
		}
		return loader.Bucket(), nil
	}
	got, changes, _ := countCall(t, x, bucket, reload, false, keyedWords(t, "soap", "stain", "a", "soap"))
	if want := "soap => 2\na => 2\nsoap => 3\n"; strings.Join(got.sink, "") != want {
		t.Errorf("output is %q; want %q", got.sink, want)
	}
	if len(got.letters) != 1 || len(changes) != 1 || len(values(t, changes[0])) != 2 {
		t.Fatalf("dead letters %v; %d changes", got.letters, len(changes))
	}
	letter := got.letters[0]
	if letter.GetCode() != "C504" || string(letter.GetKey()) != "s" || letter.GetPreview() != "stain" ||
		!strings.Contains(letter.GetError(), "this state is stained") {
		t.Errorf("the dead letter says %v", letter)
	}
}

func TestAStateThatHasNoBytesAtTheEndOfACallNamesStepAndKey(t *testing.T) {
	defer example.SetSerialize(true)()
	serialize, written := wa.Serialize, 0
	wa.Serialize = func(value any) []byte {
		if _, ok := value.(*example.Totals); ok {
			if written++; written != 2 {
				panic("only the second time is a good time")
			}
		}
		return serialize(value)
	}
	x := newExecutor(t, wordCount(t), countStage)
	call := x.NewCall(state.NewBucket(), func() (*state.Bucket, error) { return state.NewBucket(), nil })
	if err := call.Run(keyedWords(t, "soap")); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := call.Finish(false)
	failed := (*stage.Failure)(nil)
	if !errors.As(err, &failed) || failed.Code != "C511" {
		t.Fatalf("the call ended with %v; want C511", err)
	}
	for _, part := range []string{"the state of key \"s\" cannot be serialized", "only the second time"} {
		if !strings.Contains(failed.Reason, part) {
			t.Errorf("the reason is %q; want %q in it", failed.Reason, part)
		}
	}
	wa.Serialize = serialize
	_, log, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "soap"))
	wa.Deserialize = func([]byte) any { panic("it cannot be read") }
	loader := x.NewLoader()
	err = loader.Load(log[0])
	if !errors.As(err, &failed) || failed.Code != "C507" || !strings.HasPrefix(failed.Reason, "the state of key \"s\" cannot be read") {
		t.Errorf("the log was read with %v; want C507", err)
	}
}

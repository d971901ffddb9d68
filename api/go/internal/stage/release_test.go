package stage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// history is a state that contains all messages of its key.
type history struct{ Seen []string }

type histories struct{}

func (histories) Build() any { return &history{} }

// remembering adds each message to a history. For some messages it fails after that.
type remembering struct{ failing map[string]bool }

func (remembering) Name() string { return "remember" }

func (r remembering) Compute(data, state any) (any, bool) {
	text, seen := data.(string), &state.(*history).Seen
	*seen = append(*seen, text)
	if strings.HasSuffix(text, "boom") || r.failing[text] {
		panic("asked to fail")
	}
	if strings.HasSuffix(text, "once") {
		r.failing[text] = true
	}
	if strings.HasSuffix(text, "silent") {
		return nil, true
	}
	return strings.Join(*seen, ","), !strings.HasSuffix(text, "unsaved")
}

type texts struct{}

func (texts) Encode(data any) []byte { return []byte(data.(string)) }

func rememberingApp(t testing.TB) *declaration.Application {
	app := application.MakeApplication("Remember")
	app.NewPipeline("Remember", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(remembering{map[string]bool{}}, histories{}, "histories", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", texts{}))
	return declared(t, app)
}

// inParts runs a bucket call in parts. The outputs of all parts but the last are released.
func inParts(
	x *stage.Executor, log [][]byte, whole bool, parts [][][]byte, skips ...*pb.Skip,
) ([]stage.OutputFrame, [][]byte, []*pb.StepCount, error) {
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
		return nil, nil, nil, err
	}
	x.Reset()
	x.Begin(0, skips)
	call := x.NewCall(bucket, load)
	var outputs []stage.OutputFrame
	for i, part := range parts {
		if err := call.Run(part...); err != nil {
			return nil, nil, nil, err
		}
		if i == len(parts)-1 {
			break
		}
		released, err := call.Release()
		if err != nil {
			return nil, nil, nil, err
		}
		outputs = append(outputs, released...)
	}
	last, changes, _, err := call.Finish(whole)
	return append(outputs, last...), changes, x.Counts(), err
}

// keyedTexts makes a frame of texts, whose first bytes are their keys.
func keyedTexts(t testing.TB, sequence int, texts []string) []byte {
	t.Helper()
	b := frame.Builder{Port: 1, Encoding: 17}
	for i, text := range texts {
		b.UseKey(b.AddKey([]byte(text[:1])))
		b.UseSequence(uint64(sequence + i))
		b.Add(append([]byte{1}, text...))
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// shown describes the outputs, dead letters and counts of a call, and the states after it.
func shown(t testing.TB, x *stage.Executor, outputs []stage.OutputFrame, log [][]byte, counts []*pb.StepCount) string {
	t.Helper()
	got := collect(t, outputs)
	var letters, states []string
	for _, letter := range got.letters {
		letters = append(letters, fmt.Sprint(letter.GetCode(), " ", letter.GetSequence(), " ", string(letter.GetKey())))
	}
	loader := x.NewLoader()
	for _, entry := range log {
		if err := loader.Load(entry); err != nil {
			t.Fatal(err)
		}
	}
	for entry := range loader.Bucket().Table(1).Entries() {
		states = append(states, fmt.Sprint(entry.Key, entry.Value.(*history).Seen))
	}
	slices.Sort(letters)
	slices.Sort(states)
	return fmt.Sprint(got.sink, letters, states, counts)
}

func TestACallCutIntoPartsGivesWhatOneCallGives(t *testing.T) {
	defer example.SetSerialize(false)()
	wa.RegisterType(&history{})
	random := rand.New(rand.NewPCG(15, 1))
	one, other := newExecutor(t, rememberingApp(t), countStage), newExecutor(t, rememberingApp(t), countStage)
	for range 300 {
		var log [][]byte
		for range 1 + random.IntN(3) {
			parts, frames := drawnParts(t, random)
			whole := random.IntN(2) == 0
			outputs, changes, counts, err := inParts(one, log, whole, [][][]byte{frames})
			if err != nil {
				t.Fatal(err)
			}
			outputsCut, changesCut, countsCut, err := inParts(other, log, whole, parts)
			if err != nil {
				t.Fatal(err)
			}
			if whole {
				log = nil
			}
			want := shown(t, one, outputs, append(slices.Clone(log), changes...), counts)
			if got := shown(t, other, outputsCut, append(slices.Clone(log), changesCut...), countsCut); got != want {
				t.Fatalf("in %d parts: %s; want %s", len(parts), got, want)
			}
			log = append(log, changes...)
		}
	}
}

// drawnParts draws messages. It returns their frames divided into parts, and as one part.
func drawnParts(t testing.TB, random *rand.Rand) (parts [][][]byte, frames [][]byte) {
	t.Helper()
	parts = [][][]byte{nil}
	for sequence := 0; sequence < random.IntN(12); {
		var drawn []string
		for range 1 + random.IntN(3) {
			drawn = append(drawn, []string{"a", "b", "c"}[random.IntN(3)]+[]string{"", "", "boom", "silent", "unsaved"}[random.IntN(5)])
		}
		frames = append(frames, keyedTexts(t, sequence, drawn))
		parts[len(parts)-1] = append(parts[len(parts)-1], frames[len(frames)-1])
		sequence += len(drawn)
		if random.IntN(2) == 0 {
			parts = append(parts, nil)
		}
	}
	return parts, frames
}

func TestCodeThatFailsWhenItRunsAgainEndsTheCallWithW430(t *testing.T) {
	defer example.SetSerialize(false)()
	x := newExecutor(t, rememberingApp(t), countStage)
	parts := [][][]byte{{keyedTexts(t, 0, []string{"aonce"})}, {keyedTexts(t, 1, []string{"aboom"})}, nil}
	_, _, _, err := inParts(x, nil, false, parts)
	failed := (*stage.Failure)(nil)
	if !errors.As(err, &failed) || failed.Error() != `W430 step "remember": user code failed on a retry of a message whose results were already delivered` {
		t.Errorf("the call ended with %v; want W430", err)
	}
}

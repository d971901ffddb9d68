package stage_test

import (
	"testing"

	"wallarooapi/application"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
)

// Seen is a state that encoding/gob writes.
type Seen struct{ Words []string }

type seenBuilder struct{}

func (seenBuilder) Build() interface{} { return &Seen{} }

type see struct{}

func (see) Name() string { return "see" }

func (see) Compute(data, state interface{}) (interface{}, bool) {
	seen := state.(*Seen)
	seen.Words = append(seen.Words, data.(string))
	return nil, true
}

// TestEachStateOfALogIsCompleteInItself: a rescale takes single states out of the frames of a log, so reading a state
// must not require an earlier one.
func TestEachStateOfALogIsCompleteInItself(t *testing.T) {
	app := application.MakeApplication("Seen")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(see{}, seenBuilder{}, "seen", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	x := newExecutor(t, declared(t, app), countStage)
	_, changes, _ := countCall(t, x, state.NewBucket(), noRebuild(t), false, keyedWords(t, "a", "b", "cc", "d", "a"))
	keys := 0
	for _, entry := range changes {
		var f frame.Frame
		if _, err := f.Read(entry); err != nil {
			t.Fatal(err)
		}
		values := f.Values
		for i := range f.Count {
			length := f.Lengths.At(i)
			value, err := codec.NewDecoder().Decode(f.Encoding, values[:length])
			if _, ok := value.(*Seen); err != nil || !ok {
				t.Errorf("state %d alone is %T: %v", i, value, err)
			}
			values = values[length:]
			keys++
		}
	}
	if keys != 4 {
		t.Errorf("%d keys in the log; want 4", keys)
	}
}

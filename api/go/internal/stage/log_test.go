package stage_test

import (
	"testing"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/example"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
)

// A rescale picks states out of the frames of a log, so none may rest on those before it.
func TestEachStateOfALogIsCompleteInItself(t *testing.T) {
	x := newExecutor(t, wordCount(t), countStage)
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
			if _, ok := value.(*example.Totals); err != nil || !ok {
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

package stage_test

import (
	"strings"
	"testing"

	"wallarooapi/application"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
)

// forgetful counts words. It does not persist a word that ends with "-", and does not count one that ends with "?".
type forgetful struct{ example.CountWords }

func (f *forgetful) Compute(data, state interface{}) (interface{}, bool) {
	word := data.(string)
	if strings.HasSuffix(word, "?") {
		return &example.WordCount{Word: word, Count: uint64(len(state.(*example.Totals).Counts))}, false
	}
	result, _ := f.CountWords.Compute(data, state)
	return result, !strings.HasSuffix(word, "-")
}

func TestAChangeThatIsNotPersistedIsADeadLetter(t *testing.T) {
	app := application.MakeApplication("Forgetful")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(&forgetful{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	x := newExecutor(t, declared(t, app), countStage)
	x.CheckPersist()
	words := keyedWords(t, "a-", "a1", "a2", "a3", "a4", "a?", "a-", "a?")
	got, changes, bucket := countCall(t, x, state.NewBucket(), noRebuild(t), false, words)
	if want := "a1 => 1\na2 => 1\na3 => 1\na4 => 1\na? => 4\na? => 4\n"; strings.Join(got.sink, "") != want {
		t.Errorf("output is %q; want %q", got.sink, want)
	}
	if len(got.letters) != 2 || len(changes) != 1 || bucket.Keys() != 1 {
		t.Fatalf("%d dead letters, %d changes, %d keys", len(got.letters), len(changes), bucket.Keys())
	}
	for i, sequence := range []uint64{0, 6} {
		l := got.letters[i]
		if l.GetCode() != "C510" || l.GetStep() != "count" || string(l.GetKey()) != "a" || l.GetSequence() != sequence ||
			!strings.Contains(l.GetError(), `changed the state of key "a" and returned persist False`) {
			t.Errorf("dead letter %v", l)
		}
	}
}

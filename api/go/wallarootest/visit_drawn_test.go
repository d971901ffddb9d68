package wallarootest_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wallarooapi/wallarootest"
)

// reference computes the expected results of messages and visits for the application that keeping declares.
type reference struct {
	values  map[string]string
	shown   []string
	letters int
}

func (r *reference) visit(name, metadata string) int {
	keys := len(r.values)
	for key, value := range r.values {
		switch {
		case name == "show":
			r.shown = append(r.shown, key+"="+value+metadata)
		case name == "set" && metadata == key:
			r.letters++
		case name == "set":
			r.values[key] += metadata
		case name == "forget" && value == metadata:
			delete(r.values, key)
		}
	}
	return keys
}

func TestDrawnVisits(t *testing.T) {
	for seed := range uint64(200) {
		draw := rand.New(rand.NewPCG(seed, 7))
		app, expected := wallarootest.New(t, keeping()), reference{values: map[string]string{}}
		var history []string
		for range draw.IntN(25) {
			key, text := string(rune('a'+draw.IntN(3))), string(rune('a'+draw.IntN(4)))
			if draw.IntN(2) == 0 {
				app.Send("Lines", key+"="+text)
				expected.values[key] = text
				history = append(history, key+"="+text)
				continue
			}
			name := []string{"show", "set", "forget"}[draw.IntN(3)]
			history = append(history, name+" "+text)
			if keys := expected.visit(name, text); app.Visit(name, []byte(text)) != keys {
				t.Fatalf("seed %d: %q: %d keys were to be visited", seed, history, keys)
			}
		}
		slices.Sort(expected.shown)
		if shown := sorted(app.Lines("Visits")); !slices.Equal(shown, expected.shown) {
			t.Fatalf("seed %d: %q gave %q; expected %q", seed, history, shown, expected.shown)
		}
		if letters := len(app.DeadLetters()); letters != expected.letters {
			t.Fatalf("seed %d: %q gave %d dead letters; expected %d", seed, history, letters, expected.letters)
		}
		var states []string
		for _, key := range app.Keys("keep") {
			states = append(states, key+"="+wallarootest.State[Kept](app, "keep", key).Value)
		}
		var wanted []string
		for key, value := range expected.values {
			wanted = append(wanted, key+"="+value)
		}
		slices.Sort(wanted)
		if !slices.Equal(states, wanted) {
			t.Fatalf("seed %d: %q left %q; expected %q", seed, strings.Join(history, ", "), states, wanted)
		}
	}
}

package wallarootest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// Kept is the state of a key: its last value.
type Kept struct{ Value string }

func keeping() *stream.Application {
	app := stream.New("Visits")
	lines := stream.From(app, "Lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, func(line []byte) (string, error) { return string(line), nil }))
	keyed := stream.KeyBy(lines, "key", func(line string) string { return line[:1] })
	kept := stream.MapState(keyed, "keep", func(_ context.Context, line string, state *Kept) (*string, error) {
		state.Value = line[2:]
		return nil, nil
	})
	stream.OnVisit(kept, "show", func(_ context.Context, visit *stream.Visit, state *Kept) (*string, error) {
		text := string(visit.Key) + "=" + state.Value + string(visit.Metadata)
		return &text, nil
	})
	stream.OnVisit(kept, "set", func(_ context.Context, visit *stream.Visit, state *Kept) (*string, error) {
		state.Value += string(visit.Metadata)
		if bytes.Equal(visit.Metadata, visit.Key) {
			return nil, errors.New("it is the key itself")
		}
		return nil, nil
	})
	stream.OnVisit(kept, "forget", func(_ context.Context, visit *stream.Visit, state *Kept) (*string, error) {
		if state.Value == string(visit.Metadata) {
			visit.DeleteState()
		}
		return nil, nil
	})
	kept.To(stream.TCPSink("127.0.0.1:7002", func(text *string) ([]byte, error) { return []byte(*text), nil }))
	return app
}

// sorted sorts lines, because visitors of several buckets emit them in any order.
func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

func TestAVisitRunsForEachKeyWithState(t *testing.T) {
	app := wallarootest.New(t, keeping())
	if visited := app.Visit("show", nil); visited != 0 {
		t.Errorf("%d keys visited; there are none", visited)
	}
	app.Send("Lines", "b=1", "a=2", "b=3")
	if visited := app.Visit("show", []byte("!")); visited != 2 {
		t.Errorf("%d keys visited; expected 2", visited)
	}
	wallarootest.Equal(t, sorted(app.Lines("Visits")), []string{"a=2!", "b=3!"})
}

func TestAVisitorChangesAndDeletesStates(t *testing.T) {
	app := wallarootest.New(t, keeping())
	app.Send("Lines", "a=1", "b=2", "c=1")
	app.Visit("set", []byte("x"))
	app.Visit("forget", []byte("1x"))
	wallarootest.Equal(t, app.Keys("keep"), []string{"b"})
	app.Send("Lines", "a=5")
	if visited := app.Visit("show", nil); visited != 2 {
		t.Errorf("%d keys visited; expected 2", visited)
	}
	wallarootest.Equal(t, sorted(app.Lines("Visits")), []string{"a=5", "b=2x"})
}

func TestAVisitorThatFailsCostsItsKeyAlone(t *testing.T) {
	app := wallarootest.New(t, keeping())
	app.Send("Lines", "a=1", "b=2")
	app.Visit("set", []byte("a"))
	letters := app.DeadLetters()
	if len(letters) != 1 || letters[0].Code != "C501" || letters[0].Key != "a" {
		t.Errorf("dead letters %v", letters)
	}
	app.Visit("show", nil)
	wallarootest.Equal(t, sorted(app.Lines("Visits")), []string{"a=1", "b=2a"})
}

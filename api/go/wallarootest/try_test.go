package wallarootest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

type total struct{ N int }

func declare() *stream.Application {
	app := stream.New("Counts")
	lines := stream.From(app, "Lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.FlatMap(lines, "split", func(_ context.Context, l string) ([]string, error) { return strings.Fields(l), nil })
	stream.MapState(stream.KeyBy(words, "w", func(w string) string { return w }), "count", func(_ context.Context, w string, s *total) (string, error) {
		s.N++
		if w == "bad" {
			return "", fmt.Errorf("bad word")
		}
		return fmt.Sprintf("%s %d", w, s.N), nil
	}).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	return app
}

func TestTry(t *testing.T) {
	begun := time.Now()
	app := wallarootest.New(t, declare())
	app.Send("Lines", "a b", "a bad a")
	wallarootest.Equal(t, app.Lines("Counts"), []string{"a 1", "b 1", "a 2", "a 3"})
	app.Send("Lines", "a")
	wallarootest.Equal(t, app.Lines("Counts"), []string{"a 1", "b 1", "a 2", "a 3", "a 4"})
	wallarootest.Equal(t, wallarootest.State[total](app, "count", "a"), total{4})
	wallarootest.Equal(t, app.Keys("count"), []string{"a", "b"})
	t.Log(app.DeadLetters())
	t.Log(wallarootest.Messages[string](app, "Counts"), app.Records("Counts"))
	t.Log(time.Since(begun))
}

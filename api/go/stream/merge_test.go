package stream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"wallarooapi/stream"
)

// Each merge doubles the number of paths to the source. A check that follows all paths would take years.
func TestManyMergesAreCheckedAtOnce(t *testing.T) {
	pass := func(_ context.Context, text string) (string, error) { return text, nil }
	app := stream.New("Merges")
	texts := stream.KeyBy(stream.From(app, "texts", source), "by", func(text string) string { return text })
	for i := range 40 {
		texts = stream.Merge(stream.Map(texts, fmt.Sprint("left ", i), pass), stream.Map(texts, fmt.Sprint("right ", i), pass))
	}
	stream.MapState(texts, "count", func(_ context.Context, text string, n *int) (string, error) { return text, nil }).
		To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	found := make(chan error, 1)
	go func() { found <- app.Check() }()
	select {
	case err := <-found:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the check does not end")
	}
}

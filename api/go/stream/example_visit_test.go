package stream_test

import (
	"context"
	"fmt"

	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
)

// An application that runs is asked with `wallaroo visit CHECKPOINT forget --metadata 10`.
func ExampleOnVisit() {
	app := stream.New("Words")
	words := stream.KeyBy(stream.From(app, "words", textSource), "by word", self)
	counts := stream.MapState(words, "count", func(_ context.Context, word string, count *int64) (string, error) {
		*count++
		return word, nil
	})
	stream.OnVisit(counts, "forget", func(_ context.Context, visit *stream.Visit, count *int64) (string, error) {
		if fmt.Sprint(*count) < string(visit.Metadata) {
			visit.DeleteState()
		}
		return "", stream.ErrSkip
	})
	counts.To(textSink)
	example.Show(app.ToJson(), "steps", "name", "visits")
	// Output:
	// by word -
	// count [forget]
}

func ExampleOnVisitFlat() {
	app := stream.New("Words")
	words := stream.KeyBy(stream.From(app, "words", textSource), "by word", self)
	counts := stream.FlatMapState(words, "count", func(_ context.Context, word string, count *int64) ([]string, error) {
		*count++
		return nil, nil
	})
	var show = func(_ context.Context, visit *stream.Visit, count *int64) ([]string, error) {
		return []string{string(visit.Key), fmt.Sprint(*count)}, nil
	}
	stream.OnVisitFlat(counts, "show", show).To(textSink)
	example.Show(app.ToJson(), "steps", "name", "visits")
	// Output:
	// by word -
	// count [show]
}

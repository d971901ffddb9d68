package stream_test

import (
	"context"
	"fmt"
	"strconv"

	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// The visitor deletes the words that have come less often than the metadata say. The command
// `wallaroo visit CHECKPOINT forget --metadata 2` visits a running application.
func ExampleOnVisit() {
	app := stream.New("Words")
	words := stream.KeyBy(stream.From(app, "words", textSource), "by word", self)
	counts := stream.MapState(words, "count", func(_ context.Context, word string, count *int64) (string, error) {
		*count++
		return word, nil
	})
	stream.OnVisit(counts, "forget", func(_ context.Context, visit *stream.Visit, count *int64) (string, error) {
		least, err := strconv.ParseInt(string(visit.Metadata), 10, 64)
		if err != nil {
			return "", err
		}
		if *count < least {
			visit.DeleteState()
		}
		return "", stream.ErrSkip
	})
	counts.To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("words", "to", "be", "be")
	fmt.Println(run.Visit("forget", []byte("2")), run.Keys("count"))
	// Output: 2 [be]
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

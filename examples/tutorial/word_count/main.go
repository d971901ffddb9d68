// Counts words. Lines come in over TCP, and each word's total is sent to a receiver.
package main

import (
	"context"
	"fmt"
	"strings"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

// total is the state of a word. Each word has its own total.
type total struct{ Count int }

// setup declares the application. `wallaroo run` calls it.
func setup(args []string) *stream.Application {
	app := stream.New("Word count")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.KeyBy(stream.FlatMap(lines, "split", split), "by word", byWord)
	stream.MapState(words, "count", count).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	return app
}

// split returns the words of a line as messages.
func split(_ context.Context, line string) ([]string, error) {
	return strings.Fields(strings.ToLower(line)), nil
}

// byWord returns the word as key of its message. Messages with the same key share a state, and are processed in order.
func byWord(word string) string { return word }

// count adds 1 to the total of the word, and returns a line with the total.
func count(_ context.Context, word string, t *total) (string, error) {
	t.Count++
	return fmt.Sprintf("%s %d\n", word, t.Count), nil
}

func main() { worker.Main(setup) }

// Counts words: lines come in over TCP, and each word's total goes to the receiver.
package main

import (
	"context"
	"fmt"
	"strings"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

// total is the state of a word; each word has one of its own.
type total struct{ Count int }

// setup declares the application; `wallaroo run` calls it.
func setup(args []string) *stream.Application {
	app := stream.New("Word count")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.KeyBy(stream.FlatMap(lines, "split", split), "by word", byWord)
	stream.MapState(words, "count", count).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	return app
}

// split returns any number of messages for one.
func split(_ context.Context, line string) ([]string, error) {
	return strings.Fields(strings.ToLower(line)), nil
}

// byWord returns the key: messages of one key meet the same state, in order.
func byWord(word string) string { return word }

// count changes the state of the word, and returns a message.
func count(_ context.Context, word string, t *total) (string, error) {
	t.Count++
	return fmt.Sprintf("%s %d\n", word, t.Count), nil
}

func main() { worker.Main(setup) }

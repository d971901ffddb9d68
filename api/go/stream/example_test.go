package stream_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"strings"

	wa "wallarooapi"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
)

// numbers adds a source with the numbers from 1 to 100.
func numbers(app *stream.Application) stream.Stream[int64] {
	next := func(_ context.Context, previous int64) (int64, error) {
		if previous == 100 {
			return 0, stream.ErrEnd
		}
		return previous + 1, nil
	}
	return stream.From(app, "numbers", stream.GeneratorSource(1, next))
}

var (
	// textSource is a source of texts. Each text follows its length in 4 bytes.
	textSource = stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)
	textSink   = stream.TCPSink("127.0.0.1:7002", stream.Text.Encode)
)

type total struct{ Count uint64 }

type counted struct {
	Word  string
	Count uint64
}

func splitWords(_ context.Context, line string) ([]string, error) { return strings.Fields(line), nil }

func countWord(_ context.Context, word string, state *total) (counted, error) {
	state.Count++
	return counted{word, state.Count}, nil
}

// repeated returns each word that it has seen before.
func repeated(_ context.Context, word string, state *total) ([]string, error) {
	state.Count++
	if state.Count == 1 {
		return nil, nil
	}
	return []string{word}, nil
}

func shout(_ context.Context, word string) (string, error) { return strings.ToUpper(word), nil }

func printCount(c counted) ([]byte, error) {
	return fmt.Appendf(nil, "%s => %d\n", c.Word, c.Count), nil
}

func self(word string) string { return word }

func Example() {
	app := stream.New("Word Count")
	words := stream.FlatMap(stream.From(app, "lines", textSource), "split", splitWords)
	counts := stream.MapState(stream.KeyBy(words, "by word", self), "count", countWord)
	counts.To(stream.TCPSink("127.0.0.1:7002", printCount))
	example.Show(app.ToJson(), "steps", "kind", "name", "inputs")
	// Output:
	// computation_multi split [0/sources/0]
	// key_by by word [0/steps/0]
	// state_computation count [0/steps/1]
}

func ExampleApplication_Check() {
	app := stream.New("Words")
	words := stream.From(app, "words", stream.TCPSource("127.0.0.1", stream.U32BE, stream.Text.Decode))
	words.To(stream.TCPSink[string]("127.0.0.1:7002", nil))
	for line := range strings.Lines(app.Check().Error()) {
		if !strings.HasPrefix(line, "  at ") { // the place in the program
			fmt.Print(line)
		}
	}
	// Output:
	// T207 To: parameter sinks is without an encoder; expected what e.g. TCPSink returns for a function
	//   fix: pass what e.g. TCPSink returns for a function
	// T211 source address "127.0.0.1" is not usable; it is not HOST:PORT
	//   fix: give HOST:PORT with a port of at most 65535
}

// The policy of a source, step or sink has precedence over that of the application.
func ExampleApplication_OnError() {
	app := stream.New("Words").OnError("fail")
	shouted := stream.Map(stream.From(app, "words", textSource.OnError("dead_letter")), "shout", shout).OnError("dead_letter")
	shouted.To(textSink.OnError("dead_letter").Named("shouts"))
	fmt.Println(strings.Contains(app.ToJson(), `"on_error": "fail"`))
	example.Show(app.ToJson(), "sources", "name", "on_error")
	example.Show(app.ToJson(), "steps", "name", "on_error")
	example.Show(app.ToJson(), "sinks", "name", "on_error")
	// Output:
	// true
	// words dead_letter
	// shout dead_letter
	// shouts dead_letter
}

// Two steps use the stream of words. Both sinks get every result of the first step. The results of the second step are
// dropped.
func ExampleStream() {
	app := stream.New("Words")
	words := stream.From(app, "words", textSource)
	stream.Map(words, "shout", shout).To(textSink, stream.TCPSink("127.0.0.1:7003", stream.Text.Encode))
	stream.Map(words, "log", func(_ context.Context, word string) (string, error) {
		log.Print(word)
		return word, nil
	}).Done()
	example.Show(app.ToJson(), "steps", "name", "inputs")
	example.Show(app.ToJson(), "sinks", "port", "inputs")
	// Output:
	// shout [0/sources/0]
	// log [0/sources/0]
	// 7002 [0/steps/0]
	// 7003 [0/steps/0]
}

// A function returns ErrSkip for a message without a result.
func ExampleMap() {
	app := stream.New("Roots")
	root := func(_ context.Context, number int64) (float64, error) {
		if number < 0 {
			return 0, stream.ErrSkip
		}
		return math.Sqrt(float64(number)), nil
	}
	stream.Map(numbers(app), "root", root).To(stream.TCPSink("127.0.0.1:7002", stream.Float64.Encode))
	example.Show(app.ToJson(), "steps", "kind", "name")
	// Output: computation root
}

func ExampleFilter() {
	app := stream.New("Errors")
	isError := func(_ context.Context, line string) (bool, error) { return strings.HasPrefix(line, "E "), nil }
	stream.Filter(stream.From(app, "lines", textSource), "errors only", isError).To(textSink)
	example.Show(app.ToJson(), "steps", "kind", "name", "inputs")
	// Output: computation errors only [0/sources/0]
}

func ExampleMerge() {
	app := stream.New("Both")
	left := stream.From(app, "left", textSource)
	right := stream.From(app, "right", stream.TCPSource("127.0.0.1:7011", stream.U32BE, stream.Text.Decode))
	stream.Map(stream.Merge(left, right), "shout", shout).To(textSink)
	example.Show(app.ToJson(), "steps", "kind", "name", "inputs")
	// Output: computation shout [0/sources/0 0/sources/1]
}

// The step is a function of another program, here of one in Python.
func ExampleThrough() {
	app := stream.New("Scores")
	score := wa.OtherProgram("scorer", "scorer.py").Computation("score", "string", "float64")
	stream.Through[float64](stream.From(app, "words", textSource), score).To(stream.TCPSink("127.0.0.1:7002", stream.Float64.Encode))
	example.Show(app.ToJson(), "steps", "kind", "name", "worker", "codec")
	// Output: computation score scorer float64
}

func ExampleLibrary() {
	library := stream.NewLibrary()
	stream.OfferMap(library, "shout", shout, "string", "string")
	stream.OfferFlatMap(library, "split", splitWords, "string", "string")
	stream.OfferMapState(library, "count", countWord, "string", "json")
	stream.OfferFlatMapState(library, "repeated", repeated, "string", "string")
	example.Show(library.ToJson(), "components", "name", "kind", "input", "output")
	// Output:
	// count state_computation string json
	// repeated state_computation_multi string string
	// shout computation string string
	// split computation_multi string string
}

package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"wallarooapi/stream"
)

// describe prints the steps of an application as the runtime gets them.
func describe(app *stream.Application) {
	if err := app.Check(); err != nil {
		fmt.Println(err)
		return
	}
	var document struct {
		Pipelines []struct {
			Steps []struct {
				Name, Kind string
				Inputs     []string
				Window     *struct {
					RangeMs int `json:"range_ms"`
					SlideMs int `json:"slide_ms"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(app.ToJson()), &document); err != nil {
		fmt.Println(err)
	}
	for _, step := range document.Pipelines[0].Steps {
		fmt.Print(step.Kind, " ", step.Name, " <- ", strings.Join(step.Inputs, " "))
		if step.Window != nil {
			fmt.Print(" ", step.Window.RangeMs, "/", step.Window.SlideMs)
		}
		fmt.Println()
	}
}

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

func printCount(c counted) ([]byte, error) {
	return fmt.Appendf(nil, "%s => %d\n", c.Word, c.Count), nil
}

func self(word string) string { return word }

func Example() {
	app := stream.New("Word Count")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.FlatMap(lines, "split", splitWords)
	counts := stream.MapState(stream.KeyBy(words, "by word", self), "count", countWord)
	counts.To(stream.TCPSink("127.0.0.1:7002", printCount))
	describe(app)
	// Output:
	// computation_multi split <- 0/sources/0
	// key_by by word <- 0/steps/0
	// state_computation count <- 0/steps/1
}

func ExampleFilter() {
	app := stream.New("Errors")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	isError := func(_ context.Context, line string) (bool, error) { return strings.HasPrefix(line, "E "), nil }
	stream.Filter(lines, "errors only", isError).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	describe(app)
	// Output: computation errors only <- 0/sources/0
}

func ExampleMerge() {
	app := stream.New("Both")
	left := stream.From(app, "left", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	right := stream.From(app, "right", stream.TCPSource("127.0.0.1:7011", stream.U32BE, stream.Text.Decode))
	shout := func(_ context.Context, line string) (string, error) { return strings.ToUpper(line), nil }
	stream.Map(stream.Merge(left, right), "shout", shout).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	describe(app)
	// Output: computation shout <- 0/sources/0 0/sources/1
}

func ExampleRangeWindow() {
	app := stream.New("Numbers")
	next := func(_ context.Context, n int64) (int64, error) {
		if n == 100 {
			return 0, stream.ErrEnd
		}
		return n + 1, nil
	}
	numbers := stream.From(app, "numbers", stream.GeneratorSource(1, next))
	sum := stream.Aggregation[int64, int64, string]{
		Name:    "sum",
		Initial: func() int64 { return 0 },
		Update:  func(n, sum int64) int64 { return sum + n },
		Combine: func(earlier, later int64) int64 { return earlier + later },
		Output:  func(_ string, sum int64) (string, error) { return fmt.Sprintln(sum), nil },
	}
	window := stream.Range{Length: 9 * time.Second, Slide: 3 * time.Second}
	stream.RangeWindow(stream.Collect(numbers), window, sum).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	describe(app)
	// Output:
	// collect collect <- 0/sources/0
	// window sum <- 0/steps/0 9000/3000
}

func ExampleJSON() {
	type order struct {
		Symbol string
		Amount int
	}
	codec := stream.JSON[order]()
	data, _ := codec.Encode(order{"AAPL", 3})
	fmt.Println(string(data))
	_, err := codec.Decode([]byte("{"))
	fmt.Println(err)
	// Output:
	// {"Symbol":"AAPL","Amount":3}
	// unexpected end of JSON input
}

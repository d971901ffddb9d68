package stream_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
)

// statistic is a state whose fields do not all begin with zero.
type statistic struct{ Smallest, Count, Sum int64 }

func (s *statistic) Init() { s.Smallest = 1_000_000 }

var _ stream.Initial = (*statistic)(nil)

// adding is the aggregation that computes the sum of a window.
var adding = stream.Aggregation[int64, int64, string]{
	Name:    "sum",
	Initial: func() int64 { return 0 },
	Update:  func(number, sum int64) int64 { return sum + number },
	Combine: func(earlier, later int64) int64 { return earlier + later },
	Output:  func(key string, sum int64) (string, error) { return fmt.Sprintln(key, sum), nil },
}

// Keys may be texts, bytes or numbers.
func ExampleKeyBy() {
	app := stream.New("Numbers")
	byParity := func(number int64) string {
		if number%2 == 0 {
			return "even"
		}
		return "odd"
	}
	byBytes := func(number int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(number)) }
	byDecade := func(number int64) uint64 { return uint64(number) / 10 }
	all := numbers(app)
	stream.KeyBy(all, "by parity", byParity).Done()
	stream.KeyBy(all, "by bytes", byBytes).Done()
	stream.Map(stream.KeyBy(all, "by decade", byDecade), "print", printNumber).To(textSink)
	example.Show(app.ToJson(), "steps", "kind", "name")
	// Output:
	// key_by by parity
	// key_by by bytes
	// key_by by decade
	// computation print
}

// A step with state after messages without a key is reported.
func ExampleMapState() {
	app := stream.New("Words")
	words := stream.From(app, "words", textSource)
	stream.MapState(stream.KeyBy(words, "by word", self), "count", countWord).To(stream.TCPSink("127.0.0.1:7002", printCount))
	example.Show(app.ToJson(), "steps", "name", "state.name", "state.key.kind")
	stream.MapState(words, "count", countWord).Done()
	example.Show(app.ToJson(), "sinks")
	// Output:
	// by word - -
	// count count message
	// T229 step "count" keeps state by the key of messages; messages from "words" have no key; fix: put key_by or collect before it (Go: KeyBy or Collect)
}

// Collect gives all messages one key, so they share one state. Init sets the first values of the state.
func ExampleCollect() {
	app := stream.New("Numbers")
	smaller := func(_ context.Context, number int64, state *statistic) ([]int64, error) {
		state.Count++
		state.Sum += number
		if number >= state.Smallest {
			return nil, nil
		}
		state.Smallest = number
		return []int64{number, state.Sum / state.Count}, nil
	}
	stream.FlatMapState(stream.Collect(numbers(app)), "smaller", smaller).To(stream.TCPSink("127.0.0.1:7002", stream.Int64.Encode))
	example.Show(app.ToJson(), "steps", "kind", "name")
	// Output:
	// collect collect
	// state_computation_multi smaller
}

// A result every 3 s: the sum of the last 9 s. Windows wait 6 s for late messages.
func ExampleRangeWindow() {
	app := stream.New("Numbers")
	window := stream.Range{Length: 9 * time.Second, Slide: 3 * time.Second, Delay: 6 * time.Second}
	stream.RangeWindow(stream.Collect(numbers(app)), window, adding).To(textSink)
	example.Show(app.ToJson(), "steps", "kind", "name", "window")
	// Output:
	// collect collect -
	// window sum map[delay_ms:6000 kind:range late:drop range_ms:9000 slide_ms:3000 time:ingest]
}

// The three policies for messages that are later than Delay.
func ExampleLate() {
	app := stream.New("Numbers")
	for _, late := range []stream.Late{stream.Drop, stream.FirePerMessage, stream.PlaceInOldestWindow} {
		stream.RangeWindow(stream.Collect(numbers(app)), stream.Range{Length: time.Minute, Late: late}, adding).To(textSink)
	}
	example.Show(app.ToJson(), "steps", "window.late")
	// Output:
	// -
	// drop
	// -
	// fire_per_message
	// -
	// place_in_oldest_window
}

// A session ends after half a minute without a message. It waits 5 s for late messages.
func ExampleSessionWindow() {
	app := stream.New("Numbers")
	window := stream.Session{Gap: 30 * time.Second, Delay: 5 * time.Second}
	stream.SessionWindow(stream.Collect(numbers(app)), window, adding).To(textSink)
	example.Show(app.ToJson(), "steps", "kind", "name", "window")
	// Output:
	// collect collect -
	// window sum map[delay_ms:5000 gap_ms:30000 kind:session late:drop time:ingest]
}

func ExampleCountWindow() {
	app := stream.New("Numbers")
	window := stream.Count{Size: 10, Flush: time.Second}
	stream.CountWindow(stream.Collect(numbers(app)), window, adding).To(textSink)
	example.Show(app.ToJson(), "steps", "kind", "name", "window")
	// Output:
	// collect collect -
	// window sum map[count:10 flush_ms:1000 kind:count]
}

func printNumber(_ context.Context, number int64) (string, error) { return fmt.Sprintln(number), nil }

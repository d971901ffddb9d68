package stream_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"wallarooapi/stream"
)

var unread = stream.NewOutput[string]("unread")

// number returns the number in a text. It emits a text without a number to the output unread.
func number(ctx context.Context, text string) (int, error) {
	value, err := strconv.Atoi(text)
	if err != nil {
		unread.Emit(ctx, text)
		return 0, stream.ErrSkip
	}
	return value, nil
}

func ExampleOutput() {
	app := stream.New("Numbers")
	texts := stream.From(app, "texts", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	numbers := stream.Map(texts, "number", number, unread)
	numbers.To(stream.TCPSink("127.0.0.1:7002", func(n int) ([]byte, error) { return []byte(strconv.Itoa(n) + "\n"), nil }))
	stream.FromOutput(numbers, unread).To(stream.TCPSink("127.0.0.1:7003", stream.Text.Encode))
	fmt.Println(app.Check())
	// Output: <nil>
}

func ExampleNewOutput() {
	alerts := stream.NewOutput[float64]("alerts")
	limit := func(ctx context.Context, degrees float64) (float64, error) {
		if degrees > 100 {
			alerts.Emit(ctx, degrees)
		}
		return degrees, nil
	}
	app := stream.New("Limits")
	parse := func(payload []byte) (float64, error) { return strconv.ParseFloat(string(payload), 64) }
	degrees := stream.From(app, "degrees", stream.TCPSource("127.0.0.1:7010", stream.U32BE, parse))
	checked := stream.Map(degrees, "limit", limit, alerts)
	checked.Done()
	stream.FromOutput(checked, alerts).To(stream.TCPSink("127.0.0.1:7003", func(d float64) ([]byte, error) {
		return fmt.Appendf(nil, "%.1f\n", d), nil
	}))
	fmt.Println(app.Check())
	// Output: <nil>
}

func ExampleFromOutput() {
	app := stream.New("Unread")
	texts := stream.From(app, "texts", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	numbers := stream.Map(texts, "number", number, unread)
	numbers.Done()
	stream.FromOutput(numbers, unread).To(stream.TCPSink("127.0.0.1:7003", stream.Text.Encode))
	fmt.Println(app.Check())
	// Output: <nil>
}

func ExampleWindowBounds() {
	app := stream.New("Per Minute")
	texts := stream.From(app, "texts", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	counts := stream.RangeWindow(stream.Collect(texts), stream.Range{Length: time.Minute}, stream.Aggregation[string, int, string]{
		Name:    "count",
		Initial: func() int { return 0 },
		Update:  func(_ string, count int) int { return count + 1 },
		Combine: func(earlier, later int) int { return earlier + later },
		OutputTo: func(ctx context.Context, _ string, count int) (string, error) {
			start, end := stream.WindowBounds(ctx)
			return fmt.Sprintf("%s to %s: %d", start.Format(time.TimeOnly), end.Format(time.TimeOnly), count), nil
		},
	})
	counts.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	fmt.Println(app.Check())
	// Output: <nil>
}

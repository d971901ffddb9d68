// Computes each sensor's average over windows of ten seconds. The time of a message is the time of the measurement.
package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type reading struct {
	Sensor  string
	Degrees float64
}

// sum is the accumulator of a window.
type sum struct {
	Total float64
	Count int
}

func setup(args []string) *stream.Application {
	app := stream.New("Averages")
	source := stream.TCPSource("127.0.0.1:7010", stream.U32BE, decode).EventTime(measured)
	readings := stream.KeyBy(stream.From(app, "readings", source), "sensor", sensor)
	// Windows of ten seconds, which wait ten more seconds for late messages.
	ten := stream.Range{Length: 10 * time.Second, Delay: 10 * time.Second}
	averages := stream.RangeWindow(readings, ten, stream.Aggregation[reading, sum, string]{
		Name:    "average",
		Initial: func() sum { return sum{} },
		Update:  func(r reading, s sum) sum { return sum{s.Total + r.Degrees, s.Count + 1} },
		Combine: func(earlier, later sum) sum { return sum{earlier.Total + later.Total, earlier.Count + later.Count} },
		Output:  average,
	})
	stream.Map(averages, "line", line).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	return app
}

// decode reads a message "TIME SENSOR DEGREES". TIME is in milliseconds since 1970.
func decode(payload []byte) (reading, error) {
	var at int64
	var r reading
	_, err := fmt.Sscanf(string(payload), "%d %s %g", &at, &r.Sensor, &r.Degrees)
	return r, err
}

// measured returns the time of a measurement. Windows use this time instead of the time of arrival.
func measured(payload []byte) time.Time {
	text, _, _ := strings.Cut(string(payload), " ")
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.UnixMilli(at)
}

func sensor(r reading) string { return r.Sensor }

// average returns the result of a window, or ErrSkip if the window has no measurements.
func average(key string, s sum) (string, error) {
	if s.Count == 0 {
		return "", stream.ErrSkip
	}
	return fmt.Sprintf("%s %.1f", key, s.Total/float64(s.Count)), nil
}

func line(_ context.Context, text string) (string, error) { return text + "\n", nil }

func main() { worker.Main(setup) }

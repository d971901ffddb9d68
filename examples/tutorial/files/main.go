// Reads log files when they appear in a directory, and writes each service's number of errors to another directory.
package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type entry struct{ Service, Level string }

// errors is the state of a service.
type errors struct{ Count int }

// result is a message for the sink: a service and its number of errors so far.
type result struct {
	Service string
	Count   int
}

// setup declares the application. Its source and its sink are formats of Spark.
func setup(args []string) *stream.Application {
	app := stream.New("Errors")
	in := stream.Spark{Format: "text", Options: map[string]string{"path": "in"}, Value: "value"}
	out := stream.Spark{Format: "csv", Options: map[string]string{"path": "out"},
		Value: "cast(key AS STRING), cast(value AS STRING)"}
	logs := stream.From(app, "logs", stream.SparkSource(in, stream.Value(decode)))
	byService := stream.KeyBy(stream.Map(logs, "only errors", onlyErrors), "service", service)
	stream.MapState(byService, "count", count).To(stream.SparkSink(out, encode))
	return app
}

// decode makes a message from a row "SERVICE LEVEL TEXT".
func decode(row []byte) (entry, error) {
	parts := strings.SplitN(string(row), " ", 3)
	if len(parts) < 3 {
		return entry{}, fmt.Errorf("%q has no text", row)
	}
	return entry{parts[0], parts[1]}, nil
}

// onlyErrors passes on errors. For other entries it returns ErrSkip, so that they are dropped.
func onlyErrors(_ context.Context, e entry) (entry, error) {
	if e.Level != "ERROR" {
		return e, stream.ErrSkip
	}
	return e, nil
}

func service(e entry) string { return e.Service }

func count(_ context.Context, e entry, state *errors) (result, error) {
	state.Count++
	return result{e.Service, state.Count}, nil
}

// encode returns a result as a row, with the service as key.
func encode(r result) (stream.Record, error) {
	return stream.Record{Key: []byte(r.Service), Value: []byte(strconv.Itoa(r.Count))}, nil
}

func main() { worker.Main(setup) }

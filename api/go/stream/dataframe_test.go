package stream_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
	"wallarooapi/stream"
)

func TestMistakesWithRows(t *testing.T) {
	type empty struct{}
	parquet := stream.Spark{Format: "parquet"}
	with := func(change func(format *stream.Spark)) stream.Spark {
		format := parquet
		change(&format)
		return format
	}
	source := func(source stream.Source[payment]) error {
		return passed(source, stream.SparkRowSink[payment](parquet)).Check()
	}
	sink := func(sink stream.Sink[payment]) error {
		return passed(stream.SparkRowSource[payment](parquet), sink).Check()
	}
	for want, err := range map[string]error{
		`T207 DataFrameSource: parameter T is int; expected a struct whose fields are the columns`: passed(
			stream.DataFrameSource[int](), stream.TCPSink("127.0.0.1:7002", func(int) ([]byte, error) { return nil, nil })).Check(),
		`T207 DataFrameSink: parameter empty is stream_test.empty, which has no fields`: passed(
			stream.TCPSource("127.0.0.1:7010", stream.U32BE, func([]byte) (empty, error) { return empty{}, nil }), stream.DataFrameSink[empty]()).Check(),
		`T207 SparkRowSource: parameter Format is ""; expected the name of a format of Spark's, e.g. "parquet"`: source(
			stream.SparkRowSource[payment](stream.Spark{})),
		`T207 SparkRowSource: parameter Schema is "a INT"; expected none: it follows from the type of the rows`: source(
			stream.SparkRowSource[payment](with(func(f *stream.Spark) { f.Schema = "a INT" }))),
		`T207 SparkRowSource: parameter Value is "user"; expected none: it follows from the type of the rows`: source(
			stream.SparkRowSource[payment](with(func(f *stream.Spark) { f.Value = "user" }))),
		`T207 Timestamp: parameter expression is ""; expected SQL over the columns, of a source of Spark`: passed(
			stream.DataFrameSource[payment]().Timestamp(""), stream.DataFrameSink[payment]()).Check(),
		`T207 Timestamp: parameter expression is "at"; expected SQL over the columns, of a source of Spark`: passed(
			stream.TCPSource("127.0.0.1:7010", stream.U32BE, func([]byte) (payment, error) { return payment{}, nil }).Timestamp("at"),
			stream.DataFrameSink[payment]()).Check(),
		`T207 SparkRowSink: parameter Schema is "a INT"; expected none: it follows from the type of the rows`: sink(
			stream.SparkRowSink[payment](with(func(f *stream.Spark) { f.Schema = "a INT" }))),
		`T207 SparkRowSink: parameter Key is "user"; expected none: it is of sources`: sink(
			stream.SparkRowSink[payment](with(func(f *stream.Spark) { f.Key = "user" }))),
		`T207 SparkRowSink: parameter Timestamp is "at"; expected none: it is of sources`: sink(
			stream.SparkRowSink[payment](with(func(f *stream.Spark) { f.Timestamp = "at" }))),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "T207") != 1 {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// reading is a row with a DATE, which must be midnight, and a float, which may have any value.
type reading struct {
	Day   time.Time `spark:"DATE"`
	Value float64
}

func TestRowsInAStage(t *testing.T) {
	app := stream.New("Readings")
	readings := stream.From(app, "readings", stream.DataFrameSource[reading]())
	stream.Map(readings, "next", func(_ context.Context, r reading) (reading, error) {
		if r.Value == 1 {
			r.Day = r.Day.Add(time.Hour)
		}
		return reading{r.Day, -r.Value}, nil
	}).To(stream.DataFrameSink[reading]())
	x, err := hosted(t, app.ToJson(),
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/sources/0"}},
		&pb.Node{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2})
	if err != nil {
		t.Fatal(err)
	}
	rows := frame.Builder{TimestampMs: 100}
	for _, text := range []string{
		`{"Day":"2026-01-31T00:00:00Z","Value":"Infinity"}`, `{"Day":"2026-01-31T00:00:00Z","Value":null}`, `{"Day":"2026-01-31T00:00:00Z","Value":1}`,
	} {
		rows.Add([]byte(text))
	}
	bytes, err := rows.Frame()
	if err != nil {
		t.Fatal(err)
	}
	outputs := play(t, x, bytes)
	if got := read(t, outputs, 2); !slices.Equal(got, []string{`{"Day":"2026-01-31","Value":"-Infinity"}`}) {
		t.Errorf("rows are %s", got)
	}
	want := []string{
		"C505 readings: column Value is null; only the type *float64 takes null",
		"C501 Readings: column Day is 2026-01-31T01:00:00Z; expected a DATE: midnight, UTC",
	}
	if got := read(t, outputs, frame.DeadLetterPort); !slices.Equal(got, want) {
		t.Errorf("dead letters are %q", got)
	}
}

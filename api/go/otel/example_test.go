package otel_test

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	_ "wallarooapi/otel" // calls have spans if a variable OTEL_* names a receiver
	"wallarooapi/stream"
)

// split starts a span. A program could also log the id of the trace.
func split(ctx context.Context, line string) ([]string, error) {
	ctx, span := otel.Tracer("words").Start(ctx, "split")
	defer span.End()
	if trace.SpanContextFromContext(ctx).IsValid() {
		fmt.Println("in a trace")
	}
	return strings.Fields(line), nil
}

// A program imports the package for its side effect. Its functions start spans with the context that they get.
func Example() {
	app := stream.New("Words")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	stream.FlatMap(lines, "split", split).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	fmt.Println(app.Check())

	words, err := split(context.Background(), "to be") // as outside of a worker: there is no trace
	fmt.Println(words, err)
	// Output:
	// <nil>
	// [to be] <nil>
}

package otel_test

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	_ "wallarooapi/otel" // nothing else: spans of calls are sent where OTEL_* names a receiver
	"wallarooapi/stream"
)

// split has a span of its own; another program could log the id of its trace.
func split(ctx context.Context, line string) ([]string, error) {
	ctx, span := otel.Tracer("words").Start(ctx, "split")
	defer span.End()
	if trace.SpanContextFromContext(ctx).IsValid() {
		fmt.Println("in a trace")
	}
	return strings.Fields(line), nil
}

// A program imports the package for what that does. Its functions begin spans with the context that they get.
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

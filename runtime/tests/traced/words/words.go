// Words, for programs in other languages; each function begins a span of its own.
package main

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"

	_ "wallarooapi/otel"
	"wallarooapi/stream"
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

func setup([]string) *stream.Library {
	library := stream.NewLibrary()
	stream.OfferFlatMap(library, "split", split, "string", "string")
	stream.OfferMapState(library, "count", count, "string", "string")
	return library
}

func split(ctx context.Context, line string) ([]string, error) {
	_, span := otel.Tracer("words").Start(ctx, "split")
	defer span.End()
	return strings.Fields(line), nil
}

func count(ctx context.Context, word string, total *int64) (string, error) {
	_, span := otel.Tracer("words").Start(ctx, "count")
	defer span.End()
	*total++
	return fmt.Sprintf("%s => %d", word, *total), nil
}

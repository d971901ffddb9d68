// Package otel continues the OpenTelemetry trace of a micro-batch in a worker. Import it for its side effect:
//
//	import _ "wallarooapi/otel"
//
// The import is sufficient. It works in all three kinds of programs: with worker.Main, with goka.Serve, and with a
// main function that `wallaroo build` makes for Wallaroo's own programs.
//
// If OpenTelemetry's environment variables name a receiver (OTEL_EXPORTER_OTLP_ENDPOINT), each call from the runtime
// to the worker, Process or ProcessState, has a span. Its parent is the span of the calling task. The service name is
// the application's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES set another one. OTEL_TRACES_SAMPLER,
// OTEL_BSP_SCHEDULE_DELAY and the others work as OpenTelemetry defines them. OTEL_EXPORTER_OTLP_PROTOCOL is
// `http/protobuf` or `grpc`. Without these variables the package starts nothing.
//
// The context of functions of package stream and of callbacks of package goka contains this span. A span that is
// started with the context is its child:
//
//	func price(ctx context.Context, order Order) (Priced, error) {
//		ctx, span := otel.Tracer("shop").Start(ctx, "price") // go.opentelemetry.io/otel
//		defer span.End()
//		...
//
// For this purpose the package sets OpenTelemetry's global tracer provider at the first call. If the program has
// already set a provider of the SDK, this provider stays and also gets the spans of calls. A span for each message
// costs more than most functions. Start spans only for rare or long work.
package otel

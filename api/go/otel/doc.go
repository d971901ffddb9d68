// Package otel adds the work of a Go program to the OpenTelemetry trace of a micro-batch. Import it for its side
// effect:
//
//	import _ "wallarooapi/otel"
//
// Nothing else is needed, neither with worker.Main, nor with goka.Serve, nor in programs for Wallaroo 0.4 and 0.5, for
// which `wallaroo build` makes a main function.
//
// If OTEL_EXPORTER_OTLP_ENDPOINT (or another variable of OpenTelemetry) names a receiver of spans, each call of the
// runtime to the worker has a span, named Process or ProcessState. Its parent is the span of the calling task. The
// service name is the application's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES set another one.
// OTEL_TRACES_SAMPLER, OTEL_BSP_SCHEDULE_DELAY and the others work as OpenTelemetry defines them.
// OTEL_EXPORTER_OTLP_PROTOCOL is `http/protobuf` or `grpc`. Without a receiver, the package starts nothing.
//
// The context of functions of package stream and of callbacks of package goka contains the span of the call. A span
// that is started with this context is its child:
//
//	func price(ctx context.Context, order Order) (Priced, error) {
//		ctx, span := otel.Tracer("shop").Start(ctx, "price") // go.opentelemetry.io/otel
//		defer span.End()
//		...
//
// For this purpose the package sets OpenTelemetry's global tracer provider at the first call. If the program has
// already set a provider of the SDK, this provider stays and also gets the spans of calls. A span for each message
// costs more than most functions, so start spans only for rare or long work.
package otel

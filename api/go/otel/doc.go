// Package otel lets a worker continue the trace of a micro-batch, for OpenTelemetry. A program imports it for its effect on import:
//
//	import _ "wallarooapi/otel"
//
// An import is enough, so programs of all three kinds have it: those that call worker.Main or goka.Serve, and Wallaroo's own, whose main
// function `wallaroo build` makes.
//
// Where OpenTelemetry's variables name a receiver (OTEL_EXPORTER_OTLP_ENDPOINT), each call of the runtime to the worker, Process or
// ProcessState, has a span: a child of the span of its task, past gRPC. The service is the application's name unless OTEL_SERVICE_NAME
// or OTEL_RESOURCE_ATTRIBUTES say otherwise; OTEL_TRACES_SAMPLER, OTEL_BSP_SCHEDULE_DELAY and the others mean what OpenTelemetry says.
// OTEL_EXPORTER_OTLP_PROTOCOL is `http/protobuf` or `grpc`. Without these variables nothing is started.
//
// The context that functions of package stream and callbacks of package goka get has the span. What they begin with it is a child:
//
//	func price(ctx context.Context, order Order) (Priced, error) {
//		ctx, span := otel.Tracer("shop").Start(ctx, "price") // go.opentelemetry.io/otel
//		defer span.End()
//		...
//
// For that the package sets OpenTelemetry's global provider of tracers at the first call. A program that has set one of its SDK before
// keeps it, and spans of calls go there, too. A span for each message costs more than most functions: begin one where it is rare or long.
package otel

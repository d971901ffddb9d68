package otel

import (
	"context"
	"os"
	"sync"

	opentelemetry "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"wallarooapi/internal/span"
)

const scope = "wallaroo"

func init() { span.Register(&tracer{}) }

// tracer makes spans for calls. It starts the tracer provider at the first call that has a parent span.
type tracer struct {
	start sync.Once
	made  *sdk.TracerProvider // nil if no receiver is configured
}

// Begin starts the span of a call from the runtime. header contains the parent span. The returned call is nil if there
// is no parent span, or if no receiver of spans is configured.
func (t *tracer) Begin(around context.Context, application, method, header string) (context.Context, span.Call) {
	parent := propagation.TraceContext{}.Extract(around, propagation.MapCarrier{span.Header: header})
	if !trace.SpanContextFromContext(parent).IsValid() {
		return around, nil
	}
	t.start.Do(func() { t.made = provider(application) })
	if t.made == nil {
		return around, nil
	}
	within, begun := t.made.Tracer(scope).Start(parent, method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.Int("process.pid", os.Getpid())))
	return within, call{begun}
}

// Flush sends the spans that have ended.
func (t *tracer) Flush(ctx context.Context) {
	t.start.Do(func() {}) // prevents a start of the provider just for Flush
	if t.made == nil {
		return
	}
	if err := t.made.ForceFlush(ctx); err != nil {
		opentelemetry.Handle(err)
	}
}

// call has the span of one call from the runtime. The span ends with the call.
type call struct{ span trace.Span }

func (c call) Fail(reason string) { c.span.SetStatus(codes.Error, reason) }

func (c call) End() { c.span.End() }

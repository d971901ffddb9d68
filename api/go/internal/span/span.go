// Package span lets the worker make tracing spans of OpenTelemetry without importing it. The module wallarooapi/otel
// registers a tracer. Without it a worker makes no spans.
package span

import "context"

// Header is the name of the gRPC metadata in which the runtime sends the parent span of a call, in the form of W3C
// Trace Context.
const Header = "traceparent"

// Tracer makes the spans of calls to a worker. Its methods may be called concurrently.
type Tracer interface {
	// Begin starts the span of a call to an application's worker. header is the value of Header. The returned context is
	// derived from around and contains the span. The Call is nil if no receiver of spans is configured.
	Begin(around context.Context, application, method, header string) (context.Context, Call)
	// Flush sends the spans that have ended. It stops when the context ends.
	Flush(context.Context)
}

// Call is the span of a call. Its methods may be called concurrently. After End they have no effect.
type Call interface {
	// Fail records the reason for the failure of the call.
	Fail(reason string)
	// End ends the span.
	End()
}

var tracer Tracer

// Register sets the tracer of this program. Call it from an init function.
func Register(made Tracer) { tracer = made }

type key struct{}

// Begin starts the span of a call, and returns a context that contains it. header is the value of Header. The Call is
// nil if header is empty, or no tracer is registered, or no receiver of spans is configured.
func Begin(around context.Context, application, method, header string) (context.Context, Call) {
	if tracer == nil || header == "" {
		return around, nil
	}
	within, call := tracer.Begin(around, application, method, header)
	if call == nil {
		return around, nil
	}
	return context.WithValue(within, key{}, true), call
}

// IsIn reports whether a context contains the span of a call.
func IsIn(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// Flush sends the spans that have ended. It stops when the context ends.
func Flush(ctx context.Context) {
	if tracer != nil {
		tracer.Flush(ctx)
	}
}

// Carry returns a context that ends when around ends. It has the values of both contexts. Those of call, such as its
// span, hide those of around. Without a span in call, Carry returns around.
func Carry(around, call context.Context) context.Context {
	if !IsIn(call) {
		return around
	}
	return carried{around, call}
}

type carried struct {
	context.Context
	call context.Context
}

func (c carried) Value(asked any) any {
	if found := c.call.Value(asked); found != nil {
		return found
	}
	return c.Context.Value(asked)
}

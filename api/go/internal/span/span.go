// Package span is the seam for traces: the module wallarooapi/otel registers the maker of the spans of calls. Without it a worker makes none.
package span

import "context"

// Header is the metadata of a call that has its parent, a traceparent of W3C's Trace Context.
const Header = "traceparent"

// Tracer makes the spans of calls to a worker. Its methods may be called at the same time.
type Tracer interface {
	// Begin begins the span of a call to an application's worker, as a child of what the header names. The context that it returns has
	// all of the given one, and the span. The Call is nil where there is nobody to send spans to.
	Begin(around context.Context, application, method, header string) (context.Context, Call)
	// Flush sends the spans that have ended, until the context ends.
	Flush(context.Context)
}

// Call is the span of a call. Its methods may be called at the same time; after End they do nothing.
type Call interface {
	// Fail notes why the call failed.
	Fail(reason string)
	// End ends the span.
	End()
}

var tracer Tracer

// Register makes a tracer that of this program. An init function calls it.
func Register(made Tracer) { tracer = made }

type key struct{}

// Begin begins the span of a call whose client has sent a header; the Call is nil where it has not, or where nobody takes spans.
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

// IsIn reports whether a context has the span of a call.
func IsIn(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// Flush sends the ended spans, until the context ends.
func Flush(ctx context.Context) {
	if tracer != nil {
		tracer.Flush(ctx)
	}
}

// Carry returns a context that ends as one does, and has the span and other values of the call whose function got the other.
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

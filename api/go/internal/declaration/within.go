package declaration

import "context"

// Contextual is implemented by objects that pass a context to functions of the program.
type Contextual interface {
	// Within returns a copy that passes this context.
	Within(context.Context) any
}

// Within returns a copy of the step that passes this context to its functions, e.g. one with a tracing span.
func (s *Step) Within(ctx context.Context) *Step {
	bound := *s
	if s.Build != nil {
		bound.Build = func() Stateless { return within(ctx, s.Build()) }
	}
	bound.Stateful, bound.Aggregation = within(ctx, s.Stateful), within(ctx, s.Aggregation)
	return &bound
}

func within[T any](ctx context.Context, part T) T {
	if contextual, is := any(part).(Contextual); is {
		return contextual.Within(ctx).(T)
	}
	return part
}

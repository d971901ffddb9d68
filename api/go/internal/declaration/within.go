package declaration

import (
	"context"

	wa "wallarooapi"
)

// Contextual is implemented by objects that pass a context to functions.
type Contextual interface {
	// Within returns a copy that passes another context.
	Within(context.Context) any
}

// Within returns a copy of the step that passes another context to its functions.
func (s *Step) Within(ctx context.Context) *Step {
	bound := *s
	if s.Build != nil {
		bound.Build = func() (wa.Computation, wa.ComputationMulti) {
			single, multi := s.Build()
			return within(ctx, single), within(ctx, multi)
		}
	}
	bound.Compute, bound.Multi, bound.Aggregation = within(ctx, s.Compute), within(ctx, s.Multi), within(ctx, s.Aggregation)
	return &bound
}

func within[T any](ctx context.Context, part T) T {
	if contextual, is := any(part).(Contextual); is {
		return contextual.Within(ctx).(T)
	}
	return part
}

package declaration

import (
	"context"

	wa "wallarooapi"
)

// Contextual is implemented by objects that call functions with a context.
type Contextual interface {
	// Within returns the same, whose functions get another context.
	Within(context.Context) any
}

// Within returns a step whose functions get another context.
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

package stream

import (
	"context"
	"slices"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
)

// Visit is the argument of a visitor besides the state: an application that runs is asked for a visit with `wallaroo visit`, and then a
// visitor runs for every key that has state.
type Visit = wa.Visit

// OnVisit adds a visitor to the MapState that a stream comes from: it runs once for each key that has state, at its place among the
// messages, and gives what MapState's function gives. Every change of the state is persisted; visit.DeleteState deletes it. An
// error or panic is a dead letter of that key and visit, and the key's state is as before it.
//
// S and Out must be those of the MapState, and a name is used once (T207).
func OnVisit[S, Out any](s Stream[Out], name string, visitor func(ctx context.Context, visit *Visit, state *S) (Out, error)) Stream[Out] {
	addVisitor(s, "OnVisit", name, visitor)
	return s
}

// OnVisitFlat is OnVisit for a FlatMapState.
func OnVisitFlat[S, Out any](s Stream[Out], name string, visitor func(ctx context.Context, visit *Visit, state *S) ([]Out, error)) Stream[Out] {
	addVisitor(s, "OnVisitFlat", name, visitor)
	return s
}

// addVisitor adds a visitor, whose results have the type R, to the step that a stream comes from.
func addVisitor[S, Out, R any](s Stream[Out], method, name string, visitor func(context.Context, *Visit, *S) (R, error)) {
	addFunction(s, method, name, visitor == nil, "visitor", func(step *declaration.Step, of any) (names *[]string, fits bool) {
		visited, fits := of.(visitable[S, R])
		if fits && visitor != nil {
			visited.Add(name, visitor)
		}
		return &step.Visits, fits
	})
}

// addFunction adds a function of a visit or timer to the step that a stream comes from, by add, which returns the step's names of such,
// and whether the function fits its types.
func addFunction[Out any](s Stream[Out], method, name string, isNil bool, what string, add func(*declaration.Step, any) (*[]string, bool)) {
	place := declaration.Caller()
	for _, step := range s.application.pipeline.Steps {
		if len(s.nodes) != 1 || step.Path != s.nodes[0].Path {
			continue
		}
		of := any(step.Compute)
		if step.Compute == nil {
			of = step.Multi
		}
		names, fits := add(step, of)
		switch {
		case !fits:
		case isNil:
			s.application.wrong(method, what, "nil", "a function", step.Path, place)
			return
		case slices.Contains(*names, name):
			s.application.wrong(method, "name", diagnostic.Shown(name)+" again", what+"s with names of their own", step.Path, place)
			return
		default:
			*names = append(*names, name)
			return
		}
	}
	s.application.wrong(method, what, "one of other types", "one with state and results of the MapState or FlatMapState before it",
		s.nodes[0].Path, place)
}

type visitable[S, R any] interface {
	Add(name string, visitor func(context.Context, *Visit, *S) (R, error))
}

// visitors are the visitors of a state step, by name.
type visitors[S, R any] map[string]func(context.Context, *Visit, *S) (R, error)

// Add adds a visitor.
func (v visitors[S, R]) Add(name string, visitor func(context.Context, *Visit, *S) (R, error)) {
	v[name] = visitor
}

// Visits returns nothing: the step knows the names.
func (v visitors[S, R]) Visits() []string { return nil }

func (c *stateful[In, S, Out]) Visit(visit *Visit, state any) (any, bool) {
	ctx, call := c.begin()
	return call.With(c.results.settle(c.visitors[visit.Name](ctx, visit, state.(*S)))), true
}

func (c *statefulMulti[In, S, Out]) Visit(visit *Visit, state any) ([]any, bool) {
	ctx, call := c.begin()
	return call.All(c.results.all(c.visitors[visit.Name](ctx, visit, state.(*S)))), true
}

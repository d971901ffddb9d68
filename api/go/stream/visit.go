package stream

import (
	"context"
	"slices"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
)

// Visit is the argument that a visitor gets in addition to the state. A visitor is a function that runs for every key
// that has state, when the command `wallaroo visit` requests this from a running application.
type Visit = wa.Visit

// OnVisit adds a visitor with this name to the MapState that a stream comes from. The visitor runs once for each key
// that has state, at a fixed place in the order of the messages. Its result continues like a result of the MapState.
// Every change of the state is persisted. visit.DeleteState deletes the state. An error or panic makes a dead letter
// for this key and visit, and the state stays as it was.
//
// S and Out must be the types of the MapState, and each name can be used only once (T207).
func OnVisit[S, Out any](s Stream[Out], name string, visitor func(ctx context.Context, visit *Visit, state *S) (Out, error)) Stream[Out] {
	addVisitor(s, "OnVisit", name, visitor)
	return s
}

// OnVisitFlat is OnVisit for a FlatMapState.
func OnVisitFlat[S, Out any](s Stream[Out], name string, visitor func(ctx context.Context, visit *Visit, state *S) ([]Out, error)) Stream[Out] {
	addVisitor(s, "OnVisitFlat", name, visitor)
	return s
}

// addVisitor adds a visitor to the step that a stream comes from. R is the type of the visitor's result: Out or []Out.
func addVisitor[S, Out, R any](s Stream[Out], method, name string, visitor func(context.Context, *Visit, *S) (R, error)) {
	addFunction(s, method, name, visitor == nil, "visitor", func(step *declaration.Step) (names *[]string, fits bool) {
		visited, fits := step.Stateful.(visitable[S, R])
		if fits && visitor != nil {
			visited.Add(name, visitor)
		}
		return &step.Visits, fits
	})
}

// addFunction adds a visitor or the function of a timer to the step that a stream comes from. The argument add stores
// the function in the step. It returns the list of names of the step's visitors or timers, and reports whether the
// function fits the step's types.
func addFunction[Out any](s Stream[Out], method, name string, isNil bool, what string, add func(*declaration.Step) (*[]string, bool)) {
	place := declaration.Caller()
	for _, step := range s.application.pipeline.Steps {
		if len(s.nodes) != 1 || step.Path != s.nodes[0].Path {
			continue
		}
		names, fits := add(step)
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

// visitable is a step with state of type S and results of type R. Visitors with these types can be added to it.
type visitable[S, R any] interface {
	Add(name string, visitor func(context.Context, *Visit, *S) (R, error))
}

// visitors maps names of visits to the visitors of a step.
type visitors[S, R any] map[string]func(context.Context, *Visit, *S) (R, error)

// Add adds a visitor.
func (v visitors[S, R]) Add(name string, visitor func(context.Context, *Visit, *S) (R, error)) {
	v[name] = visitor
}

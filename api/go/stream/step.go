package stream

import (
	"context"
	"reflect"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/usercode"
)

// Map calls a function for each message and returns the stream of its results. If the function returns a nil pointer or
// the error ErrSkip, the message has no result. outputs are the named outputs to which the function emits. Messages
// that it emits are kept even if it returns no result (see Output).
func Map[In, Out any](s Stream[In], name string, function func(ctx context.Context, in In) (Out, error), outputs ...Outputs) Stream[Out] {
	return add[In, Out](s, stateless(name, declaration.Computation, function, resultsOf[Out]().settle, outputs), function)
}

// FlatMap is Map for a function that returns any number of results. The results continue in order, without nil
// pointers. If the function returns the error ErrSkip, the message has no results.
func FlatMap[In, Out any](s Stream[In], name string, function func(ctx context.Context, in In) ([]Out, error), outputs ...Outputs) Stream[Out] {
	return add[In, Out](s, stateless(name, declaration.ComputationMulti, function, resultsOf[Out]().all, outputs), function)
}

// Filter returns a stream of the messages for which keep returns true.
func Filter[T any](s Stream[T], name string, keep func(ctx context.Context, in T) (bool, error)) Stream[T] {
	return add[T, T](s, stateless(name, declaration.Computation, func(ctx context.Context, in T) (T, error) {
		kept, err := keep(ctx, in)
		if err == nil && !kept {
			err = ErrSkip
		}
		return in, err
	}, resultsOf[T]().settle, nil), keep)
}

// Key is the constraint for types of keys. A number becomes a key of 8 bytes, big-endian.
type Key interface{ ~string | ~[]byte | ~uint64 }

// KeyBy gives each message the key that a function returns. The message and everything computed from it carry this key
// until the next KeyBy or Collect. The function must depend on the message alone. A panic makes the message a dead
// letter (C501).
//
// Source: Wallaroo 0.6, key_by.
func KeyBy[T any, K Key](s Stream[T], name string, key func(in T) K) Stream[T] {
	return add[T, T](s, &declaration.Step{Name: name, Kind: declaration.KeyBy, Partition: partition(key)}, key)
}

// partition converts the function of a KeyBy into one that returns the key as bytes. It avoids reflection for the
// frequent types string, []byte and uint64.
func partition[T any, K Key](key func(in T) K) func(data any) []byte {
	switch function := any(key).(type) {
	case func(T) string:
		return func(data any) []byte { return append([]byte{}, function(data.(T))...) }
	case func(T) []byte:
		return func(data any) []byte { return function(data.(T)) }
	case func(T) uint64:
		return func(data any) []byte { return bytesOf(function(data.(T))) }
	}
	of := func(data any) reflect.Value { return reflect.ValueOf(key(data.(T))) }
	switch reflect.TypeFor[K]().Kind() {
	case reflect.String:
		return func(data any) []byte { return []byte(of(data).String()) }
	case reflect.Slice:
		return func(data any) []byte { return of(data).Bytes() }
	}
	return func(data any) []byte { return bytesOf(of(data).Uint()) }
}

// Collect gives all messages the same key, which is empty. So a step with state after it has a single state, and one
// worker processes all messages.
//
// Source: Wallaroo 0.6, collect.
func Collect[T any](s Stream[T]) Stream[T] {
	return add[T, T](s, &declaration.Step{Name: "collect", Kind: declaration.Collect}, Collect[T])
}

// emitter is embedded in each step of this package. It makes the context for each call of the program's function.
type emitter struct {
	emits  bool            // whether the step has named outputs
	around context.Context // set by Within; if nil, the context of the worker counts
}

// begin returns the context for a call of the function. For a step with named outputs, it also returns the object that
// collects the emitted messages of the call, else nil.
func (e emitter) begin() (context.Context, *emission.Context) {
	around := e.around
	if around == nil {
		around = usercode.Context()
	}
	if !e.emits {
		return around, nil
	}
	call := emission.Begin(around)
	return call, call
}

// computation is a step without state. Its function returns a result of type R, which is Out or []Out, and an error.
type computation[In, R any] struct {
	emitter
	function func(context.Context, In) (R, error)
	settle   func(R, error) emission.Results
}

// stateless returns a step without state. settle converts the results of the function into the form for the worker.
func stateless[In, R any](name, kind string, function func(context.Context, In) (R, error), settle func(R, error) emission.Results, outputs []Outputs) *declaration.Step {
	made := &computation[In, R]{emitter{emits: len(outputs) > 0}, function, settle}
	return &declaration.Step{Name: name, Kind: kind, Outputs: namesOf(outputs), Build: func() declaration.Stateless { return made }}
}

// Within returns a copy of the step. The contexts that its function gets derive from ctx, so that they contain e.g. a
// trace.
func (c *computation[In, R]) Within(ctx context.Context) any {
	bound := *c
	bound.around = ctx
	return &bound
}

func (c *computation[In, R]) Compute(data any) emission.Results {
	ctx, call := c.begin()
	return call.With(c.settle(c.function(ctx, data.(In))))
}

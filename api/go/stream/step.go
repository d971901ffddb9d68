package stream

import (
	"context"
	"reflect"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/usercode"
)

// Map sends each message through a function with one result. With a nil pointer or the error ErrSkip, there is no
// result, but messages that the function emitted to named outputs continue (see Output).
func Map[In, Out any](s Stream[In], name string, function func(ctx context.Context, in In) (Out, error), outputs ...Outputs) Stream[Out] {
	return add[In, Out](s, stateless(name, declaration.Computation, function, resultsOf[Out]().settle, outputs), function)
}

// FlatMap sends each message through a function with any number of results. The results continue in order, without nil
// pointers. With the error ErrSkip, there are no results, but messages that the function emitted to named outputs
// continue (see Output).
func FlatMap[In, Out any](s Stream[In], name string, function func(ctx context.Context, in In) ([]Out, error), outputs ...Outputs) Stream[Out] {
	return add[In, Out](s, stateless(name, declaration.ComputationMulti, function, resultsOf[Out]().all, outputs), function)
}

// Filter passes on the messages for which keep returns true.
func Filter[T any](s Stream[T], name string, keep func(ctx context.Context, in T) (bool, error)) Stream[T] {
	return add[T, T](s, stateless(name, declaration.Computation, func(ctx context.Context, in T) (T, error) {
		kept, err := keep(ctx, in)
		if err == nil && !kept {
			err = ErrSkip
		}
		return in, err
	}, resultsOf[T]().settle, nil), keep)
}

// Key is a type of message keys. A number becomes 8 bytes, big-endian.
type Key interface{ ~string | ~[]byte | ~uint64 }

// KeyBy gives each message the key that a function returns. The message and everything computed from it carry this key
// until the next KeyBy or Collect. The function must depend on the message alone. A panic makes the message a dead
// letter (C501).
//
// Source: Wallaroo 0.6, key_by.
func KeyBy[T any, K Key](s Stream[T], name string, key func(in T) K) Stream[T] {
	return add[T, T](s, &declaration.Step{Name: name, Kind: declaration.KeyBy, Partition: partition(key)}, key)
}

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

// Collect gives all messages the empty key. The steps after it have a single state, and run in only one place at a
// time.
//
// Source: Wallaroo 0.6, collect.
func Collect[T any](s Stream[T]) Stream[T] {
	return add[T, T](s, &declaration.Step{Name: "collect", Kind: declaration.Collect}, Collect[T])
}

// emitter is the common part of the steps of this package: the context of their functions.
type emitter struct {
	emits  bool            // whether the step has named outputs
	around context.Context // context of the call; if nil, the worker's context is used
}

// begin returns the context for a call of the function, and the collector of emissions (nil without named outputs).
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

// computation is a step without state. R is the type of the function's results: Out or []Out.
type computation[In, R any] struct {
	emitter
	function func(context.Context, In) (R, error)
	settle   func(R, error) emission.Results
}

func stateless[In, R any](name, kind string, function func(context.Context, In) (R, error), settle func(R, error) emission.Results, outputs []Outputs) *declaration.Step {
	made := &computation[In, R]{emitter{emits: len(outputs) > 0}, function, settle}
	return &declaration.Step{Name: name, Kind: kind, Outputs: namesOf(outputs), Build: func() declaration.Stateless { return made }}
}

func (c *computation[In, R]) Within(ctx context.Context) any {
	bound := *c
	bound.around = ctx
	return &bound
}

func (c *computation[In, R]) Compute(data any) emission.Results {
	ctx, call := c.begin()
	return call.With(c.settle(c.function(ctx, data.(In))))
}

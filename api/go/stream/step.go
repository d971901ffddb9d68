package stream

import (
	"context"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
)

// Map sends each message through a function with one result. A nil pointer, or the error ErrSkip, means that nothing goes on.
func Map[In, Out any](s Stream[In], name string, function func(ctx context.Context, in In) (Out, error)) Stream[Out] {
	made := &computation[In, Out]{named{name}, function, resultsOf[Out]()}
	return add[In, Out](s, &declaration.Step{Name: name, Kind: declaration.Computation, Build: func() (wa.Computation, wa.ComputationMulti) {
		return made, nil
	}}, function)
}

// FlatMap sends each message through a function with any number of results. They go on in order; nil pointers among them
// are left out, and with the error ErrSkip nothing goes on.
func FlatMap[In, Out any](s Stream[In], name string, function func(ctx context.Context, in In) ([]Out, error)) Stream[Out] {
	made := &multi[In, Out]{named{name}, function, resultsOf[Out]()}
	return add[In, Out](s, &declaration.Step{Name: name, Kind: declaration.ComputationMulti, Build: func() (wa.Computation, wa.ComputationMulti) {
		return nil, made
	}}, function)
}

// Filter lets the messages go on for which a function returns true.
func Filter[T any](s Stream[T], name string, keep func(ctx context.Context, in T) (bool, error)) Stream[T] {
	made := &computation[T, T]{named{name}, func(ctx context.Context, in T) (T, error) {
		kept, err := keep(ctx, in)
		if err == nil && !kept {
			err = ErrSkip
		}
		return in, err
	}, resultsOf[T]()}
	return add[T, T](s, &declaration.Step{Name: name, Kind: declaration.Computation, Build: func() (wa.Computation, wa.ComputationMulti) {
		return made, nil
	}}, keep)
}

// Key is what a function may give as the key of a message. A number is 8 bytes, big-endian.
type Key interface{ string | []byte | uint64 }

// KeyBy gives each message the key that a function returns. It stays with the message and all that is made of it, until the next
// KeyBy or Collect. The function must depend on the message alone; a panic makes the message a dead letter (C501).
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
	}
	function := any(key).(func(T) uint64)
	return func(data any) []byte { return bytesOf(function(data.(T))) }
}

// Collect gives all messages the empty key: what follows has a single state, and runs in one place at a time.
//
// Source: Wallaroo 0.6, collect.
func Collect[T any](s Stream[T]) Stream[T] {
	return add[T, T](s, &declaration.Step{Name: "collect", Kind: declaration.Collect}, Collect[T])
}

// named gives a step its name.
type named struct{ name string }

func (n named) Name() string { return n.name }

type computation[In, Out any] struct {
	named
	function func(context.Context, In) (Out, error)
	results  results[Out]
}

func (c *computation[In, Out]) Compute(data any) any {
	return c.results.settle(c.function(running(), data.(In)))
}

type multi[In, Out any] struct {
	named
	function func(context.Context, In) ([]Out, error)
	results  results[Out]
}

func (m *multi[In, Out]) Compute(data any) []any {
	return m.results.all(m.function(running(), data.(In)))
}

func (r results[Out]) all(out []Out, err error) []any {
	if err != nil {
		refuse(err)
		return nil
	}
	messages := make([]any, len(out))
	for i, item := range out {
		messages[i] = r.message(item)
	}
	return messages
}

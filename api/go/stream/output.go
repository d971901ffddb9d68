package stream

import (
	"context"
	"reflect"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
)

// Output is a named output of a step, for messages of one type. A step declares it, emits to it, and FromOutput goes on from it:
//
//	var alerts = stream.NewOutput[Alert]("alerts")
//
//	checked := stream.Map(readings, "check", check, alerts)
//	stream.FromOutput(checked, alerts).To(alarm)
//
//	func check(ctx context.Context, reading Reading) (Reading, error) {
//		if reading.Degrees > 100 {
//			alerts.Emit(ctx, Alert{reading.Sensor})
//		}
//		return reading, nil
//	}
//
// When the function fails on a message, nothing that it emitted for it goes on. Messages of an output that nothing goes on from are
// counted and dropped.
type Output[T any] struct{ name, codec string }

// Outputs is any Output.
type Outputs interface {
	StateOption
	named() declaration.NamedOutput
}

// NewOutput describes an output. Steps may share a description; each has an output of its own.
func NewOutput[T any](name string) Output[T] { return Output[T]{name: name} }

// Emit emits a message from a function of a step that declares the output; ctx is what the function got, or derived from it. It is called
// before the function returns; what a goroutine emits later is lost, and the log of the worker says so. A
// step that does not declare the output fails on the message (C527).
func (o Output[T]) Emit(ctx context.Context, message T) {
	emission.Emit(ctx, o.name, resultsOf[T]().message(message))
}

// As returns the output with the codec in which its messages go to other programs, for a component of a Library.
func (o Output[T]) As(codec string) Output[T] { return Output[T]{o.name, codec} }

func (o Output[T]) named() declaration.NamedOutput {
	learn[T]()
	return declaration.NamedOutput{Name: o.name, Type: reflect.TypeFor[T](), Codec: o.codec}
}

func (o Output[T]) ofState(step *declaration.Step) { step.Outputs = append(step.Outputs, o.named()) }

// FromOutput goes on with the messages that the step at the end of a stream emits to an output. A stream that ends in several steps has
// none, and a step only those that it was declared with (T273).
func FromOutput[T, Out any](s Stream[Out], output Output[T]) Stream[T] {
	from := ""
	if len(s.nodes) == 1 {
		from = s.nodes[0].Path
	}
	node := s.application.declared.OutputOf(s.application.pipeline, from, output.name)
	return Stream[T]{application: s.application, nodes: []*declaration.Node{node}, timed: s.timed}
}

func namesOf(outputs []Outputs) (declared []declaration.NamedOutput) {
	for _, output := range outputs {
		declared = append(declared, output.named())
	}
	return declared
}

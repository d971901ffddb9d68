package stream

import (
	"context"
	"reflect"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
)

// Output is a named output of a step, for messages that do not go to the steps and sinks after the step. The step
// declares the output, and its function emits messages of type T to it. FromOutput returns the stream of these
// messages:
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
// If the function fails on a message, all outputs of that message are discarded. Messages of an output without a
// continuation are counted and dropped.
type Output[T any] struct{ name, codec string }

// Outputs is the interface of Output for every type of message. Functions such as Map and OfferMap take it.
type Outputs interface {
	StateOption
	named() declaration.NamedOutput
}

// NewOutput describes an output with this name. If several steps declare it, each of them has a separate output.
func NewOutput[T any](name string) Output[T] { return Output[T]{name: name} }

// Emit sends a message to the output. Call it in a function of a step that declares the output, before the function
// returns. Pass the context of the function, or a context derived from it. A message that a goroutine emits later is
// lost, and the worker's log reports this. If the step does not declare the output, the step fails on the message
// (C527).
func (o Output[T]) Emit(ctx context.Context, message T) {
	emission.Emit(ctx, o.name, resultsOf[T]().message(message))
}

// As returns a copy of the output with another codec, for a component of a Library. The messages of the output go in
// this codec to the program that uses the component. The default is "json".
func (o Output[T]) As(codec string) Output[T] { return Output[T]{o.name, codec} }

func (o Output[T]) named() declaration.NamedOutput {
	learn[T]()
	return declaration.NamedOutput{Name: o.name, Type: reflect.TypeFor[T](), Codec: o.codec}
}

func (o Output[T]) ofState(step *declaration.Step) { step.Outputs = append(step.Outputs, o.named()) }

// FromOutput returns the stream of messages that a step emits to an output. s is the stream of the step's results. The
// step must declare the output (T273).
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

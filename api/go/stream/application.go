// Package stream declares stream applications with plain, typed functions.
//
//	func setup(args []string) *stream.Application {
//		app := stream.New("Word Count")
//		lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
//		words := stream.FlatMap(lines, "split", split)
//		counts := stream.MapState(stream.KeyBy(words, "by word", byWord), "count", count)
//		counts.To(stream.TCPSink("127.0.0.1:7002", encode))
//		return app
//	}
//
//	func main() { worker.Main(setup) }
//
// It compiles to the same topology as package application and runs on the same worker. What differs is the shape of user
// code: a function gets a context and a value of its type, and returns a value and an error.
//
// # Errors
//
// A function that returns an error, or panics, makes a dead letter of the message; the state of its key stays as it was before.
// The error ErrSkip stands for "nothing goes on". The context ends when the worker gives up calls in flight.
//
// # Values
//
// Functions of several streams run at once, on several goroutines; messages with one key come one after the other.
// A function must not change a message, which other steps may get too. Messages that move to another partition, and states,
// must have bytes: see Codec.
package stream

import (
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/launch"
)

// Application is an application under declaration. It is not safe for use by several goroutines.
type Application struct {
	declared *declaration.Application
	pipeline *declaration.Pipeline
	states   map[string]bool
}

// New begins the declaration of an application. A name that is not usable is found (T210), so is an application without a sink
// (T204).
func New(name string) *Application {
	codec.IsTyped.Store(true)
	place := declaration.Caller()
	pipeline := &declaration.Pipeline{Name: name, Place: place}
	return &Application{
		&declaration.Application{Name: name, Place: place, Pipelines: []*declaration.Pipeline{pipeline}}, pipeline, map[string]bool{},
	}
}

// OnError sets the policy for failing user code, where source, step or sink have none of their own: "dead_letter"
// (the default) puts the message aside, "fail" stops the query; another word is found (T207). It returns the application.
func (a *Application) OnError(policy string) *Application {
	a.declared.OnError = policy
	return a
}

// Package wallarootest runs the declared application.
var _ = declaration.Reveal(func(public any) *declaration.Application {
	if a, is := public.(*Application); is && a != nil {
		return a.declared
	}
	return nil
})

// Check returns an error that describes everything that is wrong with the declaration, or nil: for each finding its code, what is
// wrong, the place in the document and in the program, and a remedy.
func (a *Application) Check() error {
	if found := a.declared.Check(); len(found) > 0 {
		return diagnostic.Error(found)
	}
	return nil
}

// ToJson ends the declaration and returns the topology document in its canonical form. If something is wrong
// with the declaration it returns an object with the key "diagnostics" instead.
func (a *Application) ToJson() string { return launch.Text(a.declared) }

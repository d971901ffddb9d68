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
// The package makes the same topologies as package application, and they run on the same worker. Only the form of user
// code differs: a function gets a context and a value of its type, and returns a value and an error.
//
// # Errors
//
// If a function returns an error or panics, its message becomes a dead letter, and the state of the message's key stays
// as it was before. The error ErrSkip means that the message has no result; it is not a failure. The context ends when
// the worker gives up its running calls.
//
// # Values
//
// Functions of several streams run concurrently on several goroutines. Messages with the same key are processed one
// after the other. A function must not change a message, because other steps may get the same value. Messages that move
// to another partition, and states, must be serializable: see Codec.
package stream

import (
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/workermain"
)

// Application is an application during its declaration. It is not safe for concurrent use.
type Application struct {
	declared *declaration.Application
	pipeline *declaration.Pipeline
	states   map[string]bool
}

// New begins the declaration of an application. Check reports an unusable name (T210) and an application without a
// sink (T204).
func New(name string) *Application {
	codec.IsTyped.Store(true)
	place := declaration.Caller()
	pipeline := &declaration.Pipeline{Name: name, Place: place}
	return &Application{
		&declaration.Application{Name: name, Place: place, Pipelines: []*declaration.Pipeline{pipeline}}, pipeline, map[string]bool{},
	}
}

// OnError sets the policy for failing user code: "dead_letter" (the default) puts the message aside, "fail" stops the
// query. A source, step or sink can have its own policy. Another value is reported (T207). OnError returns the
// application.
func (a *Application) OnError(policy string) *Application {
	a.declared.OnError = policy
	return a
}

// Package wallarootest gets the declared application from an Application by this function.
var _ = declaration.Reveal(func(public any) *declaration.Application {
	if a, is := public.(*Application); is && a != nil {
		return a.declared
	}
	return nil
})

// Check returns an error that describes all findings in the declaration, or nil if there are none. Each finding has a
// code, a description, the place in the document and in the program, and a remedy.
func (a *Application) Check() error {
	if found := a.declared.Check(); len(found) > 0 {
		return diagnostic.Error(found)
	}
	return nil
}

// ToJson ends the declaration and returns the topology document in its canonical form. If the declaration has
// findings, it returns an object with the key "diagnostics" instead.
func (a *Application) ToJson() string { return workermain.Text(a.declared) }

// Package stream lets Go programs declare stream applications that consist of plain, typed functions.
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
// as it was before. If a function returns the error ErrSkip, the message has no result, which is not a failure. The
// context of a function ends when the worker ends without waiting for the running functions.
//
// # Values
//
// Functions run concurrently on several goroutines: a worker serves several tasks of Spark at once. Messages with the
// same key are processed one after the other. A function must not change a message, because other steps may get the
// same value. Messages that move to another partition, and states, must be serializable: see Codec.
package stream

import (
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/workermain"
)

// Application is an application that a program declares: New begins the declaration, From adds sources, and the methods
// of streams add steps and sinks. It is not safe for concurrent use.
type Application struct {
	declared *declaration.Application
	pipeline *declaration.Pipeline
	states   map[string]bool // names of states in use
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

// OnError sets the policy for messages on which user code fails: "dead_letter" (the default) makes the message a dead
// letter, "fail" stops the application. The policy of a source, step or sink has precedence. Check reports any other
// value (T207). OnError returns the application.
func (a *Application) OnError(policy string) *Application {
	a.declared.OnError = policy
	return a
}

// This function lets package wallarootest read the declaration in an Application.
var _ = declaration.Reveal(func(public any) *declaration.Application {
	if a, is := public.(*Application); is && a != nil {
		return a.declared
	}
	return nil
})

// Check returns an error with all findings (faults of the declaration), or nil if there are none. Each finding has a
// code, a description, its place in the topology and in the program, and a remedy.
func (a *Application) Check() error {
	if found := a.declared.Check(); len(found) > 0 {
		return diagnostic.Error(found)
	}
	return nil
}

// ToJson ends the declaration and returns the topology document, a JSON text. If the declaration has findings (see
// Check), ToJson returns an object with the key "diagnostics" instead. Package worker calls ToJson; programs need not.
func (a *Application) ToJson() string { return workermain.Text(a.declared) }

package stream

import (
	"cmp"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/known"
)

// ErrSkip is the error that a function returns if it has no result for a message. It is not a failure.
var ErrSkip = errors.New("nothing goes on")

// Stream is the output of a source or a step, or of several of them (see Merge): messages of one type. If several steps
// or sinks use a stream, each of them gets every message.
type Stream[T any] struct {
	application *Application
	nodes       []*declaration.Node
	policies    []*string // policies of the source, step or sinks added last, which OnError sets
	timed       bool      // whether messages have an event time
}

// From adds a source to an application and returns the stream of its messages. The name of the source must be unique in
// the application. A stream that no step uses must end with To or Done (T204).
func From[T any](a *Application, name string, source Source[T]) Stream[T] {
	place := declaration.Caller()
	learn[T]()
	declared := source.declared
	declared.Path, declared.Name, declared.Place = a.pipeline.Path("sources", len(a.pipeline.Sources)), name, place
	declared.Output = reflect.TypeFor[T]()
	a.pipeline.Sources = append(a.pipeline.Sources, &declared)
	if declared.Edge == nil {
		a.wrong("From", "source", "without a kind", "what e.g. TCPSource returns", declared.Path, place)
	} else {
		a.declared.NewSource(&declared)
	}
	node := &declaration.Node{Path: declared.Path, What: name, Place: place}
	a.pipeline.Nodes = append(a.pipeline.Nodes, node)
	return Stream[T]{a, []*declaration.Node{node}, []*string{&declared.OnError}, declared.GivesTimes()}
}

// Merge returns a stream with the messages of several streams in arrival order. Two streams that come from one step or
// source are refused (T212).
//
// Source: Wallaroo 0.6, merge.
func Merge[T any](first Stream[T], others ...Stream[T]) Stream[T] {
	place := declaration.Caller()
	merged := Stream[T]{application: first.application, timed: first.timed, nodes: slices.Clone(first.nodes)}
	for _, other := range others {
		merged.timed = merged.timed && other.timed
		for _, node := range other.nodes {
			if slices.ContainsFunc(merged.nodes, func(known *declaration.Node) bool { return known.Path == node.Path }) {
				first.application.declared.Report(diagnostic.Of("T212", "method", "Merge", "previous", strconv.Quote(node.What),
					"reason", "both sides end in it", "fix", "merge streams that have different last steps"), "/pipelines/0", place)
				continue
			}
			merged.nodes = append(merged.nodes, node)
		}
	}
	slices.SortStableFunc(merged.nodes, func(a, b *declaration.Node) int { return inDocument(a.Path, b.Path) })
	return merged
}

// inDocument compares two paths by their order in the topology document, in which sources precede steps.
func inDocument(a, b string) int {
	first, second := strings.Split(a, "/"), strings.Split(b, "/")
	if order := strings.Compare(first[1], second[1]); order != 0 {
		return order
	}
	one, _ := strconv.Atoi(first[2])
	other, _ := strconv.Atoi(second[2])
	return cmp.Compare(one, other)
}

// OnError sets the policy for messages on which the source, step or sinks added last fail: "dead_letter" or "fail" (see
// Application.OnError). The default is the application's policy. OnError returns the stream.
func (s Stream[T]) OnError(policy string) Stream[T] {
	s.application.declared.SetPolicy(s.policies, policy, s.nodes[0].Path)
	return s
}

// To ends the stream: every message goes to each of the sinks. At least one sink is required (T207). To returns the
// stream, e.g. for OnError.
func (s Stream[T]) To(sinks ...Sink[T]) Stream[T] {
	place := declaration.Caller()
	a := s.application
	s.policies = nil
	for _, sink := range sinks {
		declared := sink.declared
		declared.Path, declared.Place = a.pipeline.Path("sinks", len(a.pipeline.Sinks)), place
		declared.Name = cmp.Or(declared.Name, a.pipeline.Name)
		declared.Inputs = s.paths()
		for _, found := range declared.Found {
			a.declared.Report(found, declaration.Pointer(declared.Path), place)
		}
		if declared.Encode == nil && len(declared.Found) == 0 {
			a.wrong("To", "sinks", "without an encoder", "what e.g. TCPSink returns for a function", declared.Path, place)
		}
		a.pipeline.Sinks = append(a.pipeline.Sinks, &declared)
		s.policies = append(s.policies, &declared.OnError)
	}
	if len(sinks) == 0 {
		a.wrong("To", "sinks", "empty", "at least one sink", s.nodes[0].Path, place)
	}
	for _, node := range s.nodes {
		node.Ended = true
	}
	return s
}

// Done ends the stream without a sink. Its messages are dropped.
func (s Stream[T]) Done() {
	for _, node := range s.nodes {
		node.Ended = true
	}
}

// paths returns the paths in the topology of the sources and steps that a stream comes from.
func (s Stream[T]) paths() []string {
	paths := make([]string, len(s.nodes))
	for i, node := range s.nodes {
		paths[i] = node.Path
	}
	return paths
}

// add adds a step after a stream and returns the stream of the step's results.
func add[In, Out any](s Stream[In], step *declaration.Step, function any) Stream[Out] {
	a := s.application
	step.Path, step.Inputs, step.Place = a.pipeline.Path("steps", len(a.pipeline.Steps)), s.paths(), declaration.Caller()
	step.Symbol = symbolOf(function)
	step.Input, step.Output = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	learn[In]()
	learn[Out]()
	for _, node := range s.nodes {
		node.Consumers++
	}
	if function != nil && reflect.ValueOf(function).Kind() == reflect.Func && reflect.ValueOf(function).IsNil() {
		a.wrong(step.Name, "function", "nil", "a function", step.Path, step.Place)
	}
	a.pipeline.Steps = append(a.pipeline.Steps, step)
	node := &declaration.Node{Path: step.Path, What: step.Name, Place: step.Place}
	a.pipeline.Nodes = append(a.pipeline.Nodes, node)
	a.declared.AddOutputs(a.pipeline, step)
	return Stream[Out]{a, []*declaration.Node{node}, []*string{&step.OnError}, s.timed}
}

// wrong reports a wrong parameter of a method (T207).
func (a *Application) wrong(method, parameter, actual, expected, path string, place declaration.Place) {
	a.declared.Wrong(declaration.Pointer(path), place, method, parameter, actual, expected)
}

// learn registers T with the built-in serialization, so that a worker can read serialized messages of this type.
func learn[T any]() {
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Interface {
		known.Register(t)
	}
}

// symbolOf returns the qualified name of a function, e.g. main.split. For a nil function it returns the function's
// type.
func symbolOf(function any) string {
	value := reflect.ValueOf(function)
	if value.Kind() != reflect.Func || value.IsNil() {
		return reflect.TypeOf(function).String()
	}
	name := runtime.FuncForPC(value.Pointer()).Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// results converts the results of the program's functions into the form for the worker. It turns an error into a panic,
// because the worker handles every failure of user code as a panic.
type results[Out any] struct{ isPointer bool }

func resultsOf[Out any]() results[Out] {
	return results[Out]{reflect.TypeFor[Out]().Kind() == reflect.Pointer}
}

// settle converts the result and the error of a function with at most one result.
func (r results[Out]) settle(out Out, err error) emission.Results {
	if err != nil {
		refuse(err)
		return emission.Results{}
	}
	return emission.Results{One: r.message(out)}
}

// all converts the results and the error of a function with any number of results.
func (r results[Out]) all(out []Out, err error) emission.Results {
	if err != nil {
		refuse(err)
		return emission.Results{}
	}
	messages := make([]any, len(out))
	for i, item := range out {
		messages[i] = r.message(item)
	}
	return emission.Results{Many: messages}
}

// message returns a function's result as the worker's message: out, or nil if out is a nil pointer.
func (r results[Out]) message(out Out) any {
	var none Out
	if r.isPointer && any(out) == any(none) {
		return nil
	}
	return out
}

// refuse panics with an error, unless it is ErrSkip.
func refuse(err error) {
	if !errors.Is(err, ErrSkip) {
		panic(err)
	}
}

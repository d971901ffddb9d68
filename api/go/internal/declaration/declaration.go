// Package declaration holds applications and libraries as a program has declared them with package application or
// stream, including the functions and objects of the program. It checks them and makes the topology document.
package declaration

import (
	"iter"
	"runtime"
	"strconv"
	"strings"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/trace"
)

// Place is a line of the user's program at which something was declared.
type Place struct {
	File string
	Line int
}

// Caller returns the line of the user's program that has called this SDK.
func Caller() Place {
	var counters [16]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		if frame.File != "" && !trace.InSDK(frame.Function) {
			return Place{frame.File, frame.Line}
		}
		if !more {
			return Place{}
		}
	}
}

// Application is a declared application or library.
type Application struct {
	Name      string
	OnError   string
	Place     Place
	Pipelines []*Pipeline
	Offers    map[string]*Offer       // by name; only for a library, which has no pipelines
	Found     []diagnostic.Diagnostic // findings from the time of declaration
}

// Pipeline is a declared pipeline of an application.
type Pipeline struct {
	Name    string
	Number  int // position in the application, from 0
	Place   Place
	Sources []*Source
	Steps   []*Step
	Sinks   []*Sink
	Nodes   []*Node // to find sources and steps whose messages nobody reads
}

// Sources yields the sources of all pipelines.
func (a *Application) Sources() iter.Seq[*Source] {
	return each(a, func(p *Pipeline) []*Source { return p.Sources })
}

// Steps yields the steps of all pipelines.
func (a *Application) Steps() iter.Seq[*Step] {
	return each(a, func(p *Pipeline) []*Step { return p.Steps })
}

// Sinks yields the sinks of all pipelines.
func (a *Application) Sinks() iter.Seq[*Sink] {
	return each(a, func(p *Pipeline) []*Sink { return p.Sinks })
}

func each[T any](a *Application, of func(*Pipeline) []T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, pipeline := range a.Pipelines {
			for _, part := range of(pipeline) {
				if !yield(part) {
					return
				}
			}
		}
	}
}

// Parts has the sources, steps and sinks of all pipelines by their paths.
type Parts struct {
	Sources map[string]*Source
	Steps   map[string]*Step
	Sinks   map[string]*Sink
}

// Parts returns the sources, steps and sinks by path.
func (a *Application) Parts() Parts {
	p := Parts{map[string]*Source{}, map[string]*Step{}, map[string]*Sink{}}
	for source := range a.Sources() {
		p.Sources[source.Path] = source
	}
	for step := range a.Steps() {
		p.Steps[step.Path] = step
	}
	for sink := range a.Sinks() {
		p.Sinks[sink.Path] = sink
	}
	return p
}

// NameOf returns the name of the source or step at a path. If another program runs it, the name is not known, and
// NameOf returns the path.
func (p Parts) NameOf(path string) string {
	if step := p.Steps[path]; step != nil {
		return step.Name
	}
	if source := p.Sources[path]; source != nil {
		return source.Name
	}
	return path
}

// Node is the stream of messages that leave a source, a step or a named output, to which the program can add steps.
type Node struct {
	Path      string // of the source, step or output
	What      string // name of this in findings
	Place     Place
	Consumers int  // number of steps that read the messages
	Ended     bool // a sink or Done follows
}

// Pointer returns the JSON pointer, into the topology, of the source, step or sink at a path, or of one of its members.
// It is empty if path is empty.
func Pointer(path string, members ...string) string {
	if path == "" {
		return ""
	}
	return "/pipelines/" + strings.Join(append([]string{path}, members...), "/")
}

// Path returns the path by which the topology names a source, step or sink of the pipeline, e.g. 0/steps/2. collection
// is sources, steps or sinks, and number is the position in it.
func (p *Pipeline) Path(collection string, number int) string {
	return strconv.Itoa(p.Number) + "/" + collection + "/" + strconv.Itoa(number)
}

// Report adds a finding. pointer is its place in the topology, and place its line in the program.
func (a *Application) Report(d diagnostic.Diagnostic, pointer string, place Place) {
	a.Found = append(a.Found, d.At(pointer, place.File, place.Line))
}

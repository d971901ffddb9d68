// Package declaration holds a program's declarations: the applications, with the user's objects, that package
// application fills in, the checks on them, and the topology document made of them.
package declaration

import (
	"iter"
	"runtime"
	"strconv"
	"strings"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/trace"
)

// Place is where in the user's program something was declared.
type Place struct {
	File string
	Line int
}

// Caller returns the first place on the stack that is not in this SDK.
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

// Application is one declared application.
type Application struct {
	Name      string
	OnError   string
	Place     Place
	Pipelines []*Pipeline
	Offers    map[string]*Offer       // by name; of a library, which has no pipelines
	Found     []diagnostic.Diagnostic // what was wrong at the time of declaration
}

// Pipeline is one declared pipeline.
type Pipeline struct {
	Name    string
	Number  int
	Place   Place
	Sources []*Source
	Steps   []*Step
	Sinks   []*Sink
	Nodes   []*Node // the sources and the steps, to find open ends
}

// Sources yields those of all pipelines.
func (a *Application) Sources() iter.Seq[*Source] {
	return each(a, func(p *Pipeline) []*Source { return p.Sources })
}

// Steps yields those of all pipelines.
func (a *Application) Steps() iter.Seq[*Step] {
	return each(a, func(p *Pipeline) []*Step { return p.Steps })
}

// Sinks yields those of all pipelines.
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

// Node is a place in a pipeline that messages leave from.
type Node struct {
	Path      string
	What      string // the name, for messages
	Place     Place
	Consumers int
	Ended     bool // a sink or Done follows
}

// Pointer returns the JSON pointer of a part of the document: of a path, or of a member below it; none without a path.
func Pointer(path string, members ...string) string {
	if path == "" {
		return ""
	}
	return "/pipelines/" + strings.Join(append([]string{path}, members...), "/")
}

// Path returns the path of a source, step or sink.
func (p *Pipeline) Path(collection string, number int) string {
	return strconv.Itoa(p.Number) + "/" + collection + "/" + strconv.Itoa(number)
}

// Report files a finding.
func (a *Application) Report(d diagnostic.Diagnostic, pointer string, place Place) {
	a.Found = append(a.Found, d.At(pointer, place.File, place.Line))
}

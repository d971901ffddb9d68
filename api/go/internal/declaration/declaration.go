// Package declaration holds applications and libraries as the program has declared them, with its objects. It checks
// them and makes the topology document. Packages application and stream make the declarations.
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

// Caller returns the first place on the stack that is outside this SDK.
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
	Offers    map[string]*Offer       // by name; only for a library, which has no pipelines
	Found     []diagnostic.Diagnostic // findings from the time of declaration
}

// Pipeline is one declared pipeline.
type Pipeline struct {
	Name    string
	Number  int
	Place   Place
	Sources []*Source
	Steps   []*Step
	Sinks   []*Sink
	Nodes   []*Node // places after sources and steps, to find open ends
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

// Parts maps paths to the sources, steps and sinks of all pipelines.
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

// NameOf returns the name of a source or step, or its path if the part belongs to another program.
func (p Parts) NameOf(path string) string {
	if step := p.Steps[path]; step != nil {
		return step.Name
	}
	if source := p.Sources[path]; source != nil {
		return source.Name
	}
	return path
}

// Node is a place in a pipeline from which messages continue.
type Node struct {
	Path      string
	What      string // name of the place in findings
	Place     Place
	Consumers int
	Ended     bool // a sink or Done follows
}

// Pointer returns the JSON pointer of the part at a path, or of a member of this part. It is empty if path is empty.
func Pointer(path string, members ...string) string {
	if path == "" {
		return ""
	}
	return "/pipelines/" + strings.Join(append([]string{path}, members...), "/")
}

// Path returns the path of the source, step or sink with a number. collection is sources, steps or sinks.
func (p *Pipeline) Path(collection string, number int) string {
	return strconv.Itoa(p.Number) + "/" + collection + "/" + strconv.Itoa(number)
}

// Report adds a finding.
func (a *Application) Report(d diagnostic.Diagnostic, pointer string, place Place) {
	a.Found = append(a.Found, d.At(pointer, place.File, place.Line))
}

package stage

import (
	"context"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/life"
	pb "wallarooapi/internal/workerpb"
)

// parts maps paths to the sources, steps and sinks that this program declares.
type parts struct {
	sources map[string]*declaration.Source
	steps   map[string]*declaration.Step
	sinks   map[string]*declaration.Sink
}

func partsOf(application *declaration.Application) parts {
	p := parts{map[string]*declaration.Source{}, map[string]*declaration.Step{}, map[string]*declaration.Sink{}}
	for source := range application.Sources() {
		p.sources[source.Path] = source
	}
	for step := range application.Steps() {
		p.steps[step.Path] = step
	}
	for sink := range application.Sinks() {
		p.sinks[sink.Path] = sink
	}
	return p
}

// nameOf returns the name of a part, or its path if the part belongs to another program.
func (p parts) nameOf(path string) string {
	if step := p.steps[path]; step != nil {
		return step.Name
	}
	if source := p.sources[path]; source != nil {
		return source.Name
	}
	return path
}

// hosted returns the step that a node runs: a step of the application, or the step of a component that a library
// offers. The step's functions get the context ctx.
func (p parts) hosted(ctx context.Context, d *pb.Node, application *declaration.Application) *declaration.Step {
	step := p.steps[d.GetPath()]
	if d.GetComponent() != "" {
		step = nil
		if offer := application.Offers[d.GetComponent()]; offer != nil {
			step = offer.Step
		}
	}
	if step == nil || ctx == life.Context() {
		return step
	}
	return step.Within(ctx)
}

// New compiles a stage of an application. Its functions get the context of the worker.
func New(application *declaration.Application, description *pb.Stage) (*Executor, error) {
	return NewWithin(life.Context(), application, description)
}

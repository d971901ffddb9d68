package stage

import (
	"context"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/life"
	pb "wallarooapi/internal/workerpb"
)

// hosted returns the step that a node runs: a step of the application, or the step of a component that a library
// offers. The step's functions get the context ctx.
func hosted(ctx context.Context, d *pb.Node, application *declaration.Application, parts declaration.Parts) *declaration.Step {
	step := parts.Steps[d.GetPath()]
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

package stage

import (
	"context"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/usercode"
	pb "wallarooapi/internal/workerpb"
)

// hosted returns the step whose user code a node runs: a step of this application, or a component that this library
// offers to another application. It returns nil for other nodes. ctx is the context that user functions get.
func hosted(ctx context.Context, d *pb.Node, application *declaration.Application, parts declaration.Parts) *declaration.Step {
	step := parts.Steps[d.GetPath()]
	if d.GetComponent() != "" {
		step = nil
		if offer := application.Offers[d.GetComponent()]; offer != nil {
			step = offer.Step
		}
	}
	if step == nil || ctx == usercode.Context() {
		return step
	}
	return step.Within(ctx)
}

// New compiles a stage of an application. User functions get the context of the worker.
func New(application *declaration.Application, description *pb.Stage) (*Executor, error) {
	return NewWithin(usercode.Context(), application, description)
}

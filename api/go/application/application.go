// Package application declares stream applications with the API of Wallaroo 0.4 and 0.5: pipelines of sources,
// computations and sinks. New programs use package stream.
//
//	a := application.MakeApplication("Word Count Application")
//	a.NewPipeline("Split and Count", application.MakeTCPSourceConfig("127.0.0.1", "7010", &Decoder{})).
//		ToMulti(&SplitBuilder{}).
//		ToStatePartition(&CountWords{}, &WordTotalsBuilder{}, "word totals", &WordPartitionFunction{}).
//		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", &Encoder{}))
//	return a.ToJson()
//
// A mistake in a declaration never causes a panic. Check and ToJson report all findings together.
//
// Source: Wallaroo 0.4 and 0.5, package wallarooapi/application.
package application

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/workermain"
)

// Application is an application that a program declares: NewPipeline adds a pipeline. It is not safe for concurrent
// use.
type Application struct {
	declared *declaration.Application
}

// MakeApplication begins the declaration of an application. Check reports an unusable name (T210) and an application
// without a sink (T204).
func MakeApplication(name string) *Application {
	return &Application{&declaration.Application{Name: name, Place: declaration.Caller()}}
}

// OnError sets the policy for messages on which user code fails: "dead_letter" (the default) makes the message a dead
// letter, "fail" stops the application. The policy of a source, step or sink has precedence. Check reports any other
// value (T207). OnError returns the application.
func (a *Application) OnError(policy string) *Application {
	a.declared.OnError = policy
	return a
}

// NewPipeline adds a pipeline and returns a builder for the steps after its source. Check reports an unusable name
// (T210), and a run also reports a name that is used twice (T203). The pipeline must end with ToSink, ToSinks or Done
// (T204). A step or sink after this end is reported (T212).
func (a *Application) NewPipeline(name string, sourceConfig SourceConfig) *PipelineBuilder {
	place := declaration.Caller()
	pipeline := &declaration.Pipeline{Name: name, Number: len(a.declared.Pipelines), Place: place}
	a.declared.Pipelines = append(a.declared.Pipelines, pipeline)
	node := &declaration.Node{Path: pipeline.Path("sources", 0), What: "NewPipeline", Place: place}
	pipeline.Nodes = append(pipeline.Nodes, node)
	var policies []*string
	if sourceConfig == nil {
		found := diagnostic.Wrong("NewPipeline", "sourceConfig", "nil", "a source", "pass what e.g. MakeTCPSourceConfig returns")
		a.declared.Report(found, declaration.Pointer(node.Path), place)
	} else {
		source := sourceConfig.source()
		source.Path, source.Name, source.Place = node.Path, name, place
		pipeline.Sources = append(pipeline.Sources, source)
		a.declared.NewSource(source)
		policies = append(policies, &source.OnError)
	}
	return &PipelineBuilder{a.declared, pipeline, node, policies}
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
// Check), ToJson returns an object with the key "diagnostics" instead.
func (a *Application) ToJson() string { return workermain.Text(a.declared) }

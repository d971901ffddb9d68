package declaration

import (
	"fmt"
	"os"

	wa "wallarooapi"
	"wallarooapi/internal/topology"
)

// Language, SDKVersion and Protocol describe this SDK.
const (
	Language   = "go"
	SDKVersion = "0.1.0"
	Protocol   = 1
)

// Described is the document of an application or library.
type Described interface {
	Tree() topology.Object
	// Own returns this program's entry for the workers.
	Own() *topology.Worker
}

// Describe makes the document of a checked application or library, without the code hash.
func (a *Application) Describe() (Described, error) {
	if a.Offers != nil {
		return a.Library()
	}
	return a.Document()
}

// Document makes the topology of a checked application, without the code hash, which takes some time to compute.
func (a *Application) Document() (*topology.Document, error) {
	worker, err := own()
	if err != nil {
		return nil, err
	}
	document := &topology.Document{Name: a.Name, OnError: a.OnError, Worker: worker}
	for _, pipeline := range a.Pipelines {
		document.Pipelines = append(document.Pipelines, pipeline.document())
		document.Worker.Components = append(document.Worker.Components, pipeline.components()...)
	}
	document.Worker.InterfaceHash = document.Hash()
	return document, nil
}

// own returns this program's entry for the workers in the topology.
func own() (worker topology.Worker, err error) {
	executable, err := os.Executable()
	if err != nil {
		return worker, fmt.Errorf("the path of this program: %w", err)
	}
	directory, err := os.Getwd()
	if err != nil {
		return worker, fmt.Errorf("the working directory: %w", err)
	}
	return topology.Worker{
		Language: Language, SDKVersion: SDKVersion, Protocol: Protocol,
		Command: []string{executable}, Directory: directory, Args: Arguments(),
	}, nil
}

// Arguments returns the arguments of the program without the program name.
func Arguments() []string {
	if len(wa.Args) == 0 {
		return nil
	}
	return wa.Args[1:]
}

func (p *Pipeline) document() topology.Pipeline {
	out := topology.Pipeline{Name: p.Name}
	for _, source := range p.Sources {
		out.Sources = append(out.Sources, topology.Source{
			Path: source.Path, Name: source.Name, Edge: source.Edge, Codec: source.Codec, OnError: source.OnError,
		})
	}
	for _, step := range p.Steps {
		out.Steps = append(out.Steps, step.document())
	}
	for _, sink := range p.Sinks {
		out.Sinks = append(out.Sinks, topology.Sink{
			Path: sink.Path, Name: sink.Name, Edge: sink.Edge, Inputs: sink.Inputs, OnError: sink.OnError,
		})
	}
	return out
}

func (s *Step) document() topology.Step {
	out := topology.Step{
		Path: s.Path, Name: s.Name, Kind: s.Kind, Inputs: s.Inputs, Window: s.Window, Visits: s.Visits, Timers: s.Timers, Codec: s.Codec, Remote: s.Remote,
		OnError: s.OnError,
	}
	switch {
	case s.IsTimed() && s.IsEvent:
		out.Time = topology.EventTime
	case s.IsTimed():
		out.Time = topology.IngestTime
	}
	if s.State != nil {
		unknown := "create"
		if s.State.Closed {
			unknown = "dead_letter"
		}
		out.State = &topology.State{Name: s.State.Name, TTLMs: s.State.TTLMs, ByKey: s.State.ByKey, Keys: s.State.Keys, Unknown: unknown}
	}
	return out
}

func (p *Pipeline) components() []topology.Component {
	var all []topology.Component
	add := func(path, symbol string, place Place) {
		all = append(all, topology.Component{Path: path, Symbol: symbol, File: place.File, Line: place.Line})
	}
	for _, source := range p.Sources {
		add(source.Path, typeName(source.Given), source.Place)
	}
	for _, step := range p.Steps {
		if step.Remote != nil || step.Kind == Output {
			continue
		}
		add(step.Path, step.Symbol, step.Place)
		if step.State != nil && !step.State.ByKey {
			add(step.Path+"/partition", typeName(step.Given), step.Place)
		}
		if step.State != nil {
			add(step.Path+"/state", step.State.Class, step.Place)
			all[len(all)-1].Shape = step.State.Shape
		}
	}
	for _, sink := range p.Sinks {
		add(sink.Path, typeName(sink.Given), sink.Place)
	}
	return all
}

package declaration

import (
	"cmp"
	"fmt"
	"os"

	wa "wallarooapi"
	"wallarooapi/internal/topology"
)

// Language, SDKVersion and Protocol are in each document: the language and version of this SDK, and its protocol
// version.
const (
	Language   = "go"
	SDKVersion = "0.1.0"
	Protocol   = 1
)

// Document is the topology document of an application, or the corresponding document of a library, with its hash.
type Document struct {
	Tree          topology.Object
	InterfaceHash string
}

// Describe makes the document of an application or library for which Check has no findings. codeHash is the hash of the
// program's binary.
func (a *Application) Describe(codeHash string) (*Document, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the path of this program: %w", err)
	}
	directory, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the working directory: %w", err)
	}
	pipelines := topology.ArrayOf(a.Pipelines, (*Pipeline).tree)
	head := topology.WithSome(topology.Of("topology_version", topology.Version, "name", a.Name), "on_error", a.OnError)
	tree, components := head.With("workers", nil, "pipelines", pipelines), topology.Array{}
	for _, pipeline := range a.Pipelines {
		components = append(components, pipeline.components()...)
	}
	if a.Offers != nil {
		tree = topology.Of("components", a.offered((*Offer).tree))
	}
	hash := topology.InterfaceHash(tree)
	worker := topology.Of(
		"name", topology.WorkerName, "language", Language, "sdk_version", SDKVersion, "protocol_version", Protocol,
		"command", topology.Texts([]string{executable}), "directory", directory, "args", topology.Texts(Arguments()),
		"call_deadline_ms", topology.CallDeadlineMs, "interface_hash", hash, "code_hash", codeHash, "components", components,
	)
	if a.Offers != nil {
		tree = topology.Of("worker", worker, "components", a.offered(func(o *Offer) topology.Object { return append(o.tree(), o.symbol()...) }))
	} else {
		tree[len(head)].Value = topology.Array{worker}
	}
	return &Document{tree, hash}, nil
}

// Arguments returns the arguments of the program without the program name.
func Arguments() []string {
	if len(wa.Args) == 0 {
		return nil
	}
	return wa.Args[1:]
}

func (p *Pipeline) tree() topology.Object {
	return topology.Of("name", p.Name, "sources", topology.ArrayOf(p.Sources, (*Source).tree),
		"steps", topology.ArrayOf(p.Steps, (*Step).tree), "sinks", topology.ArrayOf(p.Sinks, (*Sink).tree))
}

func (s *Source) tree() topology.Object {
	members := append(topology.Of("path", s.Path, "name", s.Name), s.Edge.Tree()...)
	if _, made := s.Edge.(*topology.Generator); !made {
		members = members.With("max_message_bytes", topology.MaxMessageBytes)
	}
	members = members.With("codec", cmp.Or(s.Codec, topology.Codec), "worker", topology.WorkerName)
	return topology.WithSome(members, "on_error", s.OnError)
}

func (s *Step) tree() topology.Object {
	members := topology.Of("path", s.Path, "name", s.Name, "kind", s.Kind, "inputs", topology.Texts(s.Inputs))
	if s.State != nil {
		members = members.With("state", s.State.tree())
	}
	if s.Window != nil {
		members = members.With("window", s.Window.Tree())
	}
	if len(s.Visits) > 0 {
		members = members.With("visits", topology.Texts(s.Visits))
	}
	if len(s.Timers) > 0 {
		members = members.With("timers", topology.Texts(s.Timers))
	}
	members = topology.WithSome(members, "time", s.Time()).With("codec", cmp.Or(s.Codec, topology.Codec))
	if s.Remote == nil {
		members = members.With("worker", topology.WorkerName)
	} else {
		members = members.With("worker", s.Remote.Program.Worker, "component", s.Remote.Name)
	}
	return topology.WithSome(members, "on_error", s.OnError)
}

func (s *State) tree() topology.Object {
	key := topology.Of("kind", "message")
	if !s.ByKey {
		unknown := "create"
		if s.Closed {
			unknown = "dead_letter"
		}
		key = topology.Of("kind", "partition", "values", topology.ArrayOf(s.Keys, topology.DeclaredKey.Tree), "unknown", unknown)
	}
	return topology.WithSome(topology.Of("name", s.Name), "ttl_ms", s.TTLMs).With("codec", topology.Codec, "key", key)
}

func (s *Sink) tree() topology.Object {
	members := append(topology.Of("path", s.Path, "name", s.Name), s.Edge.Tree()...).
		With("inputs", topology.Texts(s.Inputs), "worker", topology.WorkerName)
	return topology.WithSome(members, "on_error", s.OnError)
}

// components describes the user code of each source, step and sink that this program runs, so that the runtime notices
// when a program changes.
func (p *Pipeline) components() (all topology.Array) {
	add := func(path, symbol string, place Place, shape map[string]string) {
		all = append(all, append(topology.Of("path", path), symbolTree(symbol, place, shape)...))
	}
	for _, source := range p.Sources {
		add(source.Path, typeName(source.Given), source.Place, nil)
	}
	for _, step := range p.Steps {
		if step.Remote != nil || step.Kind == Output {
			continue
		}
		add(step.Path, step.Symbol, step.Place, nil)
		if step.State != nil && !step.State.ByKey {
			add(step.Path+"/partition", typeName(step.Given), step.Place, nil)
		}
		if step.State != nil {
			add(step.Path+"/state", step.State.Class, step.Place, step.State.Shape)
		}
	}
	for _, sink := range p.Sinks {
		add(sink.Path, typeName(sink.Given), sink.Place, nil)
	}
	return all
}

// symbolTree returns the members that describe a piece of user code: its name, its place, and for a state its shape
// (see codec.Shape), which is nil if it is not known.
func symbolTree(symbol string, place Place, shape map[string]string) topology.Object {
	members := topology.Of("symbol", symbol)
	if place.File != "" {
		members = members.With("file", place.File, "line", place.Line)
	}
	if shape != nil {
		members = members.With("shape", topology.TextsByName(shape))
	}
	return members
}

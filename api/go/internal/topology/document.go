package topology

import (
	"crypto/sha256"
	"encoding/hex"
)

// Version is the version of the document format.
const Version = 1

// MaxMessageBytes is the longest payload that a source takes unless the topology is edited.
const MaxMessageBytes = 16 * 1024 * 1024

// CallDeadlineMs is how long one call may run unless the topology is edited.
const CallDeadlineMs = 60000

// Codec is how messages and states are serialized: in the worker's own form.
const Codec = "native"

// WorkerName is the name of the only worker entry that a front-end writes.
const WorkerName = "main"

// Document is an application as the topology describes it.
type Document struct {
	Name      string
	OnError   string // like that of its parts: a policy, or empty where the program says nothing
	Worker    Worker
	Pipelines []Pipeline
}

// Worker is the program that hosts the user's code.
type Worker struct {
	Language      string
	SDKVersion    string
	Protocol      int
	Command       []string
	Directory     string
	Args          []string
	InterfaceHash string
	CodeHash      string
	Components    []Component
}

// Component is the user's code behind one part of the topology.
type Component struct {
	Path   string
	Symbol string
	File   string
	Line   int
}

// Pipeline is what was declared together.
type Pipeline struct {
	Name    string
	Sources []Source
	Steps   []Step
	Sinks   []Sink
}

// Source is a TCP listener.
type Source struct {
	Path    string
	Name    string
	Host    string
	Port    int
	Framing Framing
	OnError string
}

// Step is a computation.
type Step struct {
	Path    string
	Name    string
	Kind    string
	Inputs  []string
	State   *State
	OnError string
}

// State says which state a step uses and how messages find it.
type State struct {
	Name    string
	Keys    []Key
	Unknown string
}

// Sink is a TCP connection.
type Sink struct {
	Path    string
	Name    string
	Host    string
	Port    int
	Inputs  []string
	OnError string
}

// Tree returns the whole document in the order of the schema.
func (d *Document) Tree() Object {
	return append(d.head(), Member{"workers", Array{d.Worker.tree()}}, Member{"pipelines", d.pipelines(true)})
}

func (d *Document) head() Object {
	return withPolicy(Object{{"topology_version", Version}, {"name", d.Name}}, d.OnError)
}

func withPolicy(object Object, policy string) Object {
	if policy == "" {
		return object
	}
	return append(object, Member{"on_error", policy})
}

// Hash returns the interface hash: of everything but workers and addresses.
func (d *Document) Hash() string {
	digest := sha256.Sum256(Canonical(append(d.head(), Member{"pipelines", d.pipelines(false)})))
	return Notation(digest[:])
}

// Notation writes a SHA-256 digest as the document does.
func Notation(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }

func (d *Document) pipelines(addresses bool) Array {
	pipelines := Array{}
	for _, pipeline := range d.Pipelines {
		sources, steps, sinks := Array{}, Array{}, Array{}
		for _, source := range pipeline.Sources {
			sources = append(sources, source.tree(addresses))
		}
		for _, step := range pipeline.Steps {
			steps = append(steps, step.tree())
		}
		for _, sink := range pipeline.Sinks {
			sinks = append(sinks, sink.tree(addresses))
		}
		pipelines = append(pipelines, Object{
			{"name", pipeline.Name}, {"sources", sources}, {"steps", steps}, {"sinks", sinks},
		})
	}
	return pipelines
}

func (w *Worker) tree() Object {
	components := Array{}
	for _, component := range w.Components {
		members := Object{{"path", component.Path}, {"symbol", component.Symbol}}
		if component.File != "" {
			members = append(members, Member{"file", component.File}, Member{"line", component.Line})
		}
		components = append(components, members)
	}
	return Object{
		{"name", WorkerName},
		{"language", w.Language},
		{"sdk_version", w.SDKVersion},
		{"protocol_version", w.Protocol},
		{"command", texts(w.Command)},
		{"directory", w.Directory},
		{"args", texts(w.Args)},
		{"call_deadline_ms", CallDeadlineMs},
		{"interface_hash", w.InterfaceHash},
		{"code_hash", w.CodeHash},
		{"components", components},
	}
}

func (s *Source) tree(addresses bool) Object {
	members := Object{{"path", s.Path}, {"name", s.Name}, {"kind", "tcp"}}
	if addresses {
		members = append(members, Member{"host", s.Host}, Member{"port", s.Port})
	}
	members = append(members,
		Member{"framing", s.Framing.tree()},
		Member{"max_message_bytes", MaxMessageBytes},
		Member{"codec", Codec},
		Member{"worker", WorkerName},
	)
	return withPolicy(members, s.OnError)
}

func (s *Step) tree() Object {
	members := Object{{"path", s.Path}, {"name", s.Name}, {"kind", s.Kind}, {"inputs", texts(s.Inputs)}}
	if s.State != nil {
		members = append(members, Member{"state", s.State.tree()})
	}
	return withPolicy(append(members, Member{"codec", Codec}, Member{"worker", WorkerName}), s.OnError)
}

func (s *State) tree() Object {
	values := Array{}
	for _, key := range s.Keys {
		values = append(values, key.tree())
	}
	return Object{
		{"name", s.Name},
		{"codec", Codec},
		{"key", Object{{"kind", "partition"}, {"values", values}, {"unknown", s.Unknown}}},
	}
}

func (s *Sink) tree(addresses bool) Object {
	members := Object{{"path", s.Path}, {"name", s.Name}, {"kind", "tcp"}}
	if addresses {
		members = append(members, Member{"host", s.Host}, Member{"port", s.Port})
	}
	return withPolicy(append(members, Member{"inputs", texts(s.Inputs)}, Member{"worker", WorkerName}), s.OnError)
}

func texts(items []string) Array {
	array := make(Array, len(items))
	for i, item := range items {
		array[i] = item
	}
	return array
}

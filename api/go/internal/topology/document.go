package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

// Version is the version of the document format.
const Version = 1

// MaxMessageBytes is the maximum length of a payload, unless the topology is edited.
const MaxMessageBytes = 16 * 1024 * 1024

// CallDeadlineMs is the deadline of one call in milliseconds, unless the topology is edited.
const CallDeadlineMs = 60000

// Codec is the codec of messages and states in the worker's own format.
const Codec = "native"

// WorkerName is the name of the only worker entry that a front-end writes.
const WorkerName = "main"

// Document is an application in the form of the topology.
type Document struct {
	Name      string
	OnError   string // a policy, or empty if the program sets none; the same for parts
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

// Component is the user's code of one part of the topology.
type Component struct {
	Path   string
	Symbol string
	File   string
	Line   int
	Shape  map[string]string // types of a state's fields by their paths; nil if not known
}

// Pipeline holds the parts that were declared together.
type Pipeline struct {
	Name    string
	Sources []Source
	Steps   []Step
	Sinks   []Sink
}

// Tree returns the whole document in the order of the schema.
func (d *Document) Tree() Object {
	return append(d.head(), Member{"workers", Array{d.Worker.tree()}}, Member{"pipelines", d.pipelines()})
}

// Own returns the entry of the program that makes the document.
func (d *Document) Own() *Worker { return &d.Worker }

func (d *Document) head() Object {
	return withSome(Object{{"topology_version", Version}, {"name", d.Name}}, "on_error", d.OnError)
}

// Hash returns the interface hash, which covers everything except workers, addresses, cookies and options.
func (d *Document) Hash() string {
	return interfaceHash(append(d.head(), Member{"pipelines", d.pipelines()}))
}

// interfaceHash returns the interface hash of a document, with or without its workers.
func interfaceHash(document Object) string {
	digest := sha256.Sum256(Canonical(withoutAddresses(document).(Object)))
	return Notation(digest[:])
}

// withoutAddresses removes workers, and the addresses, cookies and options of sources and sinks.
func withoutAddresses(tree any) any {
	switch tree := tree.(type) {
	case Array:
		array := Array{}
		for _, item := range tree {
			array = append(array, withoutAddresses(item))
		}
		return array
	case Object:
		object := Object{}
		for _, member := range tree {
			switch member.Key {
			case "workers", "host", "port", "cookie", "brokers", "options":
			case "pipelines", "sources", "sinks":
				object = append(object, Member{member.Key, withoutAddresses(member.Value)})
			default:
				object = append(object, member)
			}
		}
		return object
	}
	return tree
}

// Notation returns a SHA-256 digest as the document writes it: sha256: and hexadecimal digits.
func Notation(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }

func (d *Document) pipelines() Array {
	return arrayOf(d.Pipelines, func(p *Pipeline) Object {
		return Object{
			{"name", p.Name}, {"sources", arrayOf(p.Sources, (*Source).tree)}, {"steps", arrayOf(p.Steps, (*Step).tree)},
			{"sinks", arrayOf(p.Sinks, (*Sink).tree)},
		}
	})
}

func (w *Worker) tree() Object {
	components := arrayOf(w.Components, func(c *Component) Object { return append(Object{{"path", c.Path}}, c.symbol()...) })
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

// symbol returns the members that identify the user's code of a component.
func (c *Component) symbol() Object {
	members := Object{{"symbol", c.Symbol}}
	if c.File != "" {
		members = append(members, Member{"file", c.File}, Member{"line", c.Line})
	}
	if c.Shape != nil {
		shape := Object{}
		for _, path := range slices.Sorted(maps.Keys(c.Shape)) {
			shape = append(shape, Member{path, c.Shape[path]})
		}
		members = append(members, Member{"shape", shape})
	}
	return members
}

func texts(items []string) Array {
	return arrayOf(items, func(item *string) string { return *item })
}

// arrayOf returns an array of the trees of items.
func arrayOf[T, V any](items []T, tree func(*T) V) Array {
	array := make(Array, len(items))
	for i := range items {
		array[i] = tree(&items[i])
	}
	return array
}

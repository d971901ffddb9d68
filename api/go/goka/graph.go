package goka

import (
	"errors"
	"fmt"
	"slices"
	"time"

	theirs "github.com/lovoo/goka"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// kind is the role of an edge in its group.
type kind int

const (
	inputs kind = iota
	input
	joint
	lookup
	visitor
	loop
	table
	output
	ttl
)

// edge is one entry of a graph: a topic that the group reads or writes, a visitor, or a TTL. It contains Goka's edge,
// and the callback, which Goka's edge does not export.
type edge struct {
	theirs.Edge
	kind     kind
	callback ProcessCallback
	parts    []*edge // parts of an Inputs edge
	ttl      time.Duration
}

// Input returns an edge for a stream whose messages go to the callback. The first run begins after the newest message,
// as in Goka, unless [ReplaceGlobalConfig] sets another start. Later runs continue where the last run ended.
func Input(topic Stream, c Codec, cb ProcessCallback) Edge {
	return &edge{Edge: theirs.Input(topic, c, cb), kind: input, callback: cb}
}

// Inputs returns an edge for several streams with the same codec and callback. Without topics, Inputs returns nil,
// which DefineGroup ignores.
func Inputs(topics Streams, c Codec, cb ProcessCallback) Edge {
	if len(topics) == 0 {
		return nil
	}
	all := &edge{Edge: theirs.Inputs(topics, c, cb), kind: inputs}
	for _, topic := range topics {
		all.parts = append(all.parts, Input(topic, c, cb).(*edge))
	}
	return all
}

// Visitor returns an edge for a callback that [Processor.VisitAll] calls for every key of the group's table.
func Visitor(name string, cb ProcessCallback) Edge {
	return &edge{Edge: theirs.Visitor(name, cb), kind: visitor, callback: cb}
}

// Loop returns an edge for the group's own stream. Context.Loopback writes to it, and the callback is called for each
// of its messages.
func Loop(c Codec, cb ProcessCallback) Edge {
	return &edge{Edge: theirs.Loop(c, cb), kind: loop, callback: cb}
}

// Join returns an edge for a table that another group writes. Context.Join returns the table's value for the key of the
// current message. The values are part of the group's state. The table may have another number of partitions than the
// inputs.
func Join(topic Table, c Codec) Edge { return &edge{Edge: theirs.Join(topic, c), kind: joint} }

// Lookup returns an edge for a table of which every worker process holds a complete copy. Context.Lookup returns the
// value of any key.
func Lookup(topic Table, c Codec) Edge { return &edge{Edge: theirs.Lookup(topic, c), kind: lookup} }

// Persist returns an edge that gives the group a table: one value for each key, which Context.Value and
// Context.SetValue read and write.
func Persist(c Codec) Edge { return &edge{Edge: theirs.Persist(c), kind: table} }

// TTL returns an edge that limits how long a key keeps its value in the group's table after its last message from an
// input or the loop. d is in whole milliseconds and at most 100 years. After this time the value is deleted as by
// Context.Delete. Time is the time of the records, and advances with the clock while a key has no messages. Records of
// joined tables and visits do not prolong the life. Goka has no TTL: with [WithTester], values stay.
func TTL(d time.Duration) Edge { return &edge{Edge: lifetime(d), kind: ttl, ttl: d} }

// lifetime is a TTL in the form of Goka's edges. It has no topic.
type lifetime time.Duration

func (l lifetime) String() string { return "TTL " + time.Duration(l).String() }

func (l lifetime) Topic() string { return "" }

func (l lifetime) Codec() Codec { return nil }

// Output returns an edge for a topic to which Context.Emit may write.
func Output(topic Stream, c Codec) Edge { return &edge{Edge: theirs.Output(topic, c), kind: output} }

// GroupGraph describes a group: its inputs, tables and outputs, and the callbacks that process messages.
type GroupGraph struct {
	goka       *theirs.GroupGraph // checks the graph and names the topics
	edges      map[kind][]*edge
	codecs     map[string]Codec
	callbacks  map[string]ProcessCallback
	options    []ProcessorOption
	tableTopic string // topics of the group's own table and loop, set even if the group has none
	loopTopic  string
}

// DefineGroup returns the graph of a group with these edges. It ignores nil edges. Like Goka, it panics on an input
// without a topic and on a topic that is consumed twice.
func DefineGroup(group Group, edges ...Edge) *GroupGraph {
	g := &GroupGraph{edges: map[kind][]*edge{}, codecs: map[string]Codec{}, callbacks: map[string]ProcessCallback{}}
	all := flat(edges)
	var inner []Edge
	for _, e := range all {
		inner = append(inner, e.Edge)
	}
	g.goka = theirs.DefineGroup(group, inner...)
	// DefineGroup of Goka applies the suffixes of topic names now. The program may change the suffixes later.
	own := theirs.DefineGroup(group, theirs.Loop(nil, nil), theirs.Persist(nil))
	g.tableTopic, g.loopTopic = own.GroupTable().Topic(), own.LoopStream().Topic()
	for _, e := range all {
		g.edges[e.kind] = append(g.edges[e.kind], e)
		if e.kind != visitor && e.kind != ttl {
			g.codecs[e.Topic()] = e.Codec()
		}
		if e.kind == input || e.kind == loop {
			g.callbacks[e.Topic()] = e.callback
		}
	}
	return g
}

// flat returns a list with one edge for each topic: it replaces an edge of Inputs by one edge for each of its topics.
func flat(edges []Edge) (all []*edge) {
	for _, each := range edges {
		switch e, is := each.(*edge); {
		case !is || e == nil:
		case e.kind == inputs:
			all = append(all, e.parts...)
		default:
			all = append(all, e)
		}
	}
	return all
}

// WithOptions returns a copy of the graph with additional options. They apply to every processor of this graph and to
// [Serve]. Options of NewProcessor are applied later, so they have precedence.
func (g *GroupGraph) WithOptions(options ...ProcessorOption) *GroupGraph {
	with := *g
	with.options = append(slices.Clone(g.options), options...)
	return &with
}

// Group returns the name of the group.
func (g *GroupGraph) Group() Group { return g.goka.Group() }

// InputStreams returns the edges of the inputs, without the loop.
func (g *GroupGraph) InputStreams() Edges { return g.of(input) }

// JointTables returns the edges of the joined tables.
func (g *GroupGraph) JointTables() Edges { return g.of(joint) }

// LookupTables returns the edges of the lookup tables.
func (g *GroupGraph) LookupTables() Edges { return g.of(lookup) }

// LoopStream returns the edge of the loop, or nil if there is none.
func (g *GroupGraph) LoopStream() Edge { return g.first(loop) }

// GroupTable returns the edge of the group's table, or nil if there is none.
func (g *GroupGraph) GroupTable() Edge { return g.first(table) }

// OutputStreams returns the edges of the outputs, without table and loop.
func (g *GroupGraph) OutputStreams() Edges { return g.of(output) }

// AllEdges returns all edges, e.g. to make another graph from them.
func (g *GroupGraph) AllEdges() Edges {
	return g.of(joint, lookup, input, output, loop, table, visitor, ttl)
}

// Validate returns an error in Goka's words if the graph is invalid.
func (g *GroupGraph) Validate() error {
	for i, e := range g.edges[ttl] {
		switch {
		case i > 0:
			return errors.New("more than one TTL in group graph; leave one goka.TTL")
		case !declaration.IsTTL(e.ttl):
			return fmt.Errorf("TTL is %v; expected whole milliseconds, from one to 100 years, e.g. goka.TTL(time.Hour)", e.ttl)
		case len(g.edges[table]) == 0:
			return errors.New("TTL cannot be used in a group without table; add goka.Persist(...), or leave goka.TTL out")
		}
	}
	return g.goka.Validate()
}

// of returns the edges of some kinds.
func (g *GroupGraph) of(kinds ...kind) (found Edges) {
	for _, k := range kinds {
		for _, e := range g.edges[k] {
			found = append(found, e)
		}
	}
	return found
}

// first returns the first edge of a kind, or nil.
func (g *GroupGraph) first(k kind) Edge {
	if len(g.edges[k]) == 0 {
		return nil
	}
	return g.edges[k][0]
}

// has reports whether the graph has an edge of a kind with a topic.
func (g *GroupGraph) has(k kind, topic string) bool {
	return slices.ContainsFunc(g.edges[k], func(e *edge) bool { return e.Topic() == topic })
}

// checkTopics returns an error if a topic has a name that is invalid in Kafka. It checks the group's name, too, because
// the names of table and loop begin with it.
func (g *GroupGraph) checkTopics() error {
	for _, e := range g.of(input, joint, lookup, output, table, loop) {
		if name := e.Topic(); !topology.IsTopic(name) {
			return fmt.Errorf("no topic of Kafka has the name %q; give group and topics names of 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_', '-'", name)
		}
	}
	return nil
}

// isStateful reports whether callbacks need the state of their key.
func (g *GroupGraph) isStateful() bool { return len(g.edges[table])+len(g.edges[joint]) > 0 }

// written returns the topics that the group writes, each of them once.
func (g *GroupGraph) written() (topics []string) {
	for _, e := range g.of(output, table, loop) {
		if !slices.Contains(topics, e.Topic()) {
			topics = append(topics, e.Topic())
		}
	}
	return topics
}

// Package plan cuts an application into stages at the shuffles, so that package memory can run it without the runtime.
// The stages are those of the runtime's planner; a test compares the two. The program must run all steps itself.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// Plan is a topology cut into stages. A level is the number of shuffles before a stage.
type Plan struct {
	Ports      map[string]uint16 // port of each source, state step and sink, by path
	States     map[string]int    // level of each state, by name
	StatePorts map[string]uint16 // port of each state in logs, by name
	Levels     []*pb.Stage       // Levels[0] begins with the sources, Levels[k] after k shuffles
}

// part is a source, step or sink of the application. Here, sources and sinks are steps without a kind.
type part struct {
	*declaration.Step
	isSink bool
}

// draft is a plan in the making, with the results of the passes of Compile.
type draft struct {
	parts  []*part // parts of the topology, each after its inputs
	plan   *Plan
	levels map[string][]int           // levels at which a part passes on messages; for a sink, levels at which it is an exit
	timed  map[string]bool            // windows, steps of states with timers or a TTL, and all parts before them
	times  map[string]map[string]bool // the same parts, by the kind of time
	found  []diagnostic.Diagnostic
}

// Compile cuts an application into stages for a number of buckets. It reports steps of other programs and a state whose
// results lead back to it (P303), and too many sources, state steps and sinks (T104).
func Compile(application *declaration.Application, buckets, frameBytes uint32) (*Plan, []diagnostic.Diagnostic) {
	d := &draft{
		parts: partsOf(application), levels: map[string][]int{},
		times: map[string]map[string]bool{},
		plan:  &Plan{Ports: map[string]uint16{}, States: map[string]int{}, StatePorts: map[string]uint16{}},
	}
	for _, pass := range []func(*draft){(*draft).checkPrograms, (*draft).numberPorts, (*draft).findLevels, (*draft).findTimes} {
		if pass(d); len(d.found) > 0 {
			return nil, d.found
		}
	}
	for level := range 1 + d.deepest() {
		d.plan.Levels = append(d.plan.Levels, &pb.Stage{
			Id: fmt.Sprintf("s%d", level), Nodes: d.nodesAt(level), BucketCount: buckets, FrameBytes: frameBytes,
		})
	}
	return d.plan, nil
}

// partsOf returns all sources, then all steps, then all sinks.
func partsOf(application *declaration.Application) (parts []*part) {
	for source := range application.Sources() {
		parts = append(parts, &part{Step: &declaration.Step{Path: source.Path}})
	}
	for step := range application.Steps() {
		parts = append(parts, &part{Step: step})
	}
	for sink := range application.Sinks() {
		parts = append(parts, &part{&declaration.Step{Path: sink.Path, Inputs: sink.Inputs}, true})
	}
	return parts
}

func (d *draft) report(code string, p *part, pairs ...any) {
	pairs = append(pairs, "path", p.Path)
	d.found = append(d.found, diagnostic.Of(code, pairs...).At("/pipelines/"+p.Path, "", 0))
}

// checkPrograms reports steps that another program runs.
func (d *draft) checkPrograms() {
	for _, p := range d.parts {
		if p.Remote != nil {
			d.report("P303", p, "what", fmt.Sprintf("component %q of another program (%s)", p.Remote.Name, p.Remote.Program.Target),
				"fix", "test the steps of each program on their own, and the whole application with `wallaroo run`")
		}
	}
}

// numberPorts assigns ports to sources, state steps and sinks in document order. A state gets the port of its first
// step.
func (d *draft) numberPorts() {
	number := 0
	for _, p := range d.parts {
		if p.Kind != "" && p.State == nil {
			continue
		}
		port := uint16(number)
		number++
		d.plan.Ports[p.Path] = port
		if p.State == nil {
			continue
		}
		if _, known := d.plan.StatePorts[p.State.Name]; !known {
			d.plan.StatePorts[p.State.Name] = port
		}
	}
	if number > frame.MaxPorts {
		d.found = append(d.found, diagnostic.Of("T104", "what", "the application",
			"size", fmt.Sprintf("%d sources, state steps and sinks", number), "limit", frame.MaxPorts).At("/pipelines", "", 0))
	}
}

// findLevels decides at which level (after how many shuffles) each part runs. All steps of a state are on the deepest
// level that one of them needs. If a step moves down, steps downstream may have to move, too, so this repeats until no
// step moves. A state whose results lead back to it is reported, because it would move forever.
func (d *draft) findLevels() {
	for moved := true; moved && len(d.found) == 0; {
		moved = false
		for _, p := range d.parts {
			moved = d.putOnLevels(p) || moved
		}
	}
}

// putOnLevels sets the levels of a part from those of its inputs. moved reports whether this changes the level of a
// state.
func (d *draft) putOnLevels(p *part) (moved bool) {
	levels, deepest := d.levelsOf(p.Inputs)
	if p.State != nil {
		name := p.State.Name
		level := max(d.plan.States[name], deepest+1)
		if level > len(d.plan.StatePorts) && len(d.found) == 0 {
			d.report("P303", p, "what", fmt.Sprintf("state %q after itself", name), "fix", "give the second step a state name of its own")
		}
		moved = level != d.plan.States[name]
		d.plan.States[name] = level
		levels = []int{level}
	}
	d.levels[p.Path] = levels
	return moved
}

// levelsOf returns the levels at which the parts at these paths pass on messages, and the deepest of them. A part
// without inputs is a source, at level 0.
func (d *draft) levelsOf(paths []string) (levels []int, deepest int) {
	if len(paths) == 0 {
		return []int{0}, 0
	}
	for _, path := range paths {
		for _, level := range d.levels[path] {
			if !slices.Contains(levels, level) {
				levels = append(levels, level)
			}
			deepest = max(deepest, level)
		}
	}
	return levels, deepest
}

// findTimes finds the parts whose messages need times: windows, steps of states with timers or a TTL, and all parts
// upstream of them.
func (d *draft) findTimes() {
	timed, used := map[string]bool{}, map[string]string{} // by name of the state
	for _, p := range d.parts {
		time := p.kindOfTime()
		if time != "" {
			used[p.State.Name] = time
		}
		if time != "" || p.Window != nil {
			timed[p.State.Name] = true
		}
	}
	d.timed = d.upTo(func(p *part) bool { return p.State != nil && timed[p.State.Name] })
	for _, time := range []string{topology.IngestTime, topology.EventTime} {
		d.times[time] = d.upTo(func(p *part) bool { return p.State != nil && used[p.State.Name] == time })
	}
}

// upTo returns the parts that isLast accepts, and all parts upstream of them.
func (d *draft) upTo(isLast func(*part) bool) map[string]bool {
	found := map[string]bool{}
	for _, p := range slices.Backward(d.parts) {
		if !found[p.Path] && !isLast(p) {
			continue
		}
		found[p.Path] = true
		for _, input := range p.Inputs {
			found[input] = true
		}
	}
	return found
}

// kindOfTime returns the kind of time that a step uses, or "" if it uses none.
func (p *part) kindOfTime() string {
	switch window := p.Window.(type) {
	case *topology.RangeWindow:
		return window.Time
	case *topology.SessionWindow:
		return window.Time
	}
	return p.Time()
}

func (d *draft) deepest() (level int) {
	for _, each := range d.plan.States {
		level = max(level, each)
	}
	return level
}

// nodesAt returns the nodes of a level: the entries, then their successors up to the next shuffle.
func (d *draft) nodesAt(level int) (nodes []*pb.Node) {
	for _, p := range d.parts {
		if entry := d.entryAt(level, p); entry != nil {
			nodes = append(nodes, entry)
		}
	}
	for _, p := range d.parts {
		if inputs := d.inputsAt(level, p); len(inputs) > 0 {
			nodes = append(nodes, d.follower(p, inputs))
		}
	}
	return nodes
}

// entryAt returns the node through which messages enter a level at a part, or nil if the part is no entry of this
// level.
func (d *draft) entryAt(level int, p *part) *pb.Node {
	port := uint32(d.plan.Ports[p.Path])
	switch {
	case p.State != nil && d.plan.States[p.State.Name] == level:
		_, sessions := p.Window.(*topology.SessionWindow)
		return &pb.Node{
			Path: p.Path, Kind: kindOf(p.Kind), Port: port, Sessions: sessions, State: p.State.Name, StatePort: uint32(d.plan.StatePorts[p.State.Name]), Visits: p.Visits,
			TtlMs: uint64(p.State.TTLMs), Timers: p.Timers, EventTime: p.Time() == topology.EventTime,
		}
	case p.Kind == "" && !p.isSink && level == 0:
		return &pb.Node{Path: p.Path, Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: port, Arrival: d.times[topology.IngestTime][p.Path] && !d.times[topology.EventTime][p.Path]}
	}
	return nil
}

// inputsAt returns those inputs of a part that pass on messages at a level.
func (d *draft) inputsAt(level int, p *part) (inputs []string) {
	for _, input := range p.Inputs {
		if slices.Contains(d.levels[input], level) {
			inputs = append(inputs, input)
		}
	}
	return inputs
}

// follower returns the node of a part that gets messages from other nodes of its level. For a state step this is the
// exit to the shuffle.
func (d *draft) follower(p *part, inputs []string) *pb.Node {
	node := &pb.Node{Path: p.Path, Inputs: inputs, Port: uint32(d.plan.Ports[p.Path])}
	switch {
	case p.isSink:
		node.Kind = pb.NodeKind_NODE_KIND_SINK
	case p.State != nil:
		node.Kind, node.Timestamps, node.Keys = pb.NodeKind_NODE_KIND_KEY, d.timed[p.Path], p.State.ByKey
	default:
		node.Kind = kindOf(p.Kind)
		if p.Kind == "output" {
			node.Output = p.Name
		}
	}
	return node
}

// kindOf returns the protocol's constant for a kind of step.
func kindOf(kind string) pb.NodeKind {
	return pb.NodeKind(pb.NodeKind_value["NODE_KIND_"+strings.ToUpper(kind)])
}

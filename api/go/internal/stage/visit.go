package stage

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	wa "wallarooapi"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
	pb "wallarooapi/internal/workerpb"
)

// takeVisits sets the names of the visits that a state step accepts, as the plan lists them. It fails if the step does
// not declare one of them.
func (n *node) takeVisits(names []string) error {
	n.stateful.visits = map[string]bool{}
	for _, name := range names {
		if !slices.Contains(n.step.Visits, name) {
			return &Failure{Code: "W403", Reason: fmt.Sprintf("the step at %s takes no visit %q", n.path, name)}
		}
		n.stateful.visits[name] = true
	}
	return nil
}

// takeVisit reads the visit in the current frame.
func (x *Executor) takeVisit() (*arrival, error) {
	f := &x.frame
	if f.Count != 1 || f.Encoding != frame.Plain || f.HasAbsent() || x.keyed.bucket == nil {
		return nil, damaged(fmt.Errorf("a frame of visits has %d values of encoding %d", f.Count, f.Encoding))
	}
	ordinal := x.count(1)
	taken := &arrival{sequence: f.Sequence, timestamp: f.TimestampMs, ordinal: ordinal, skip: x.skips[ordinal], visit: &pb.Visit{}}
	if err := proto.Unmarshal(f.Values, taken.visit); err != nil {
		return nil, damaged(fmt.Errorf("the value of a frame of visits is no Visit: %w", err))
	}
	return taken, nil
}

// Visited returns for each visit and step how many keys were visited, since the last call of Visited.
func (x *Executor) Visited() []*pb.Visited {
	visited := x.visited
	x.visited = nil
	return visited
}

// runTurn runs a visit (a call of user code for every key of a state) or a tick (which ends TTLs and fires timers). A
// visit is first a tick for the states that it visits.
func (x *Executor) runTurn(t *arrival) error {
	x.sequence, x.timestamp, x.fromPort = t.sequence, t.timestamp, frame.DeadLetterPort
	x.keyed.entries = x.keyed.entries[:0]
	if t.skip == nil {
		for _, timed := range x.timed {
			if !slices.ContainsFunc(timed.steps, func(n *node) bool { return n.stateful.takes(t) }) {
				continue
			}
			if err := timed.tick(x, t); err != nil {
				return err
			}
		}
	}
	for _, n := range x.nodes {
		switch {
		case n.stateful == nil || !n.stateful.takes(t):
		case t.skip != nil:
			n.buryTurn(t)
		case t.visit != nil:
			if err := n.visitKeys(t); err != nil {
				return err
			}
		}
	}
	return x.err
}

// takes reports whether a visit or tick concerns a step.
func (s *stateful) takes(t *arrival) bool {
	if t.visit == nil {
		return s.ticks
	}
	return s.visits[t.visit.GetName()]
}

// visitKeys runs a visit for each key whose state is or will be in the log. The keys are in the order of their bytes.
func (n *node) visitKeys(t *arrival) error {
	table := n.x.keyed.bucket.Table(n.stateful.port)
	var entries []*state.Entry
	for entry := range table.Entries() {
		if entry.IsKept() {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b *state.Entry) int { return cmp.Compare(a.Key, b.Key) })
	count := &pb.Visited{Id: t.visit.GetId(), Path: n.path, Keys: uint64(len(entries))}
	n.x.visited = append(n.x.visited, count)
	for _, entry := range entries {
		n.x.turnTo(t, entry)
		failed, err := n.visitKey(table, entry, t.visit)
		if err != nil {
			return err
		}
		if failed {
			count.Failed++
		}
	}
	return n.x.err
}

// turnTo makes a key the current key of the executor during a visit or tick.
func (x *Executor) turnTo(t *arrival, entry *state.Entry) {
	x.flight.At(t.ordinal)
	x.flight.Advance()
	x.keyed.key = []byte(entry.Key)
	x.key = x.keyed.key
}

// visitKey runs the visitor of a step (its function for visits) with the state of the current key.
func (n *node) visitKey(table *state.Table, entry *state.Entry, v *pb.Visit) (failed bool, err error) {
	given := &wa.Visit{Name: v.GetName(), Metadata: v.GetMetadata(), Key: n.x.keyed.key}
	return n.runOn(table, entry, &function{input: v.GetMetadata(), deletes: given.DeletesState, run: func(value any) emission.Results {
		return n.stateful.functions.Visit(given, value)
	}})
}

// function describes one call of a visitor or of a timer's function with the state of a key.
type function struct {
	run     func(value any) emission.Results
	deletes func() bool // whether to delete the state after the call
	done    func()      // called after success; may be nil
	input   []byte      // input of a dead letter if the call fails
}

// runOn calls a function with the state of the current key. A failure makes a dead letter and restores the state.
func (n *node) runOn(table *state.Table, entry *state.Entry, f *function) (failed bool, err error) {
	x := n.x
	if x.keyed.careful {
		_ = x.save(n, entry)
	}
	results, fault := n.runFunction(f, entry.Value)
	bury := func(fault *Failure) { n.buryBytes(fault.Code, f.input, frame.Plain, fault.Reason, fault.Traceback) }
	if failed, err = n.settle(table, entry, false, results.Persist, f.deletes(), fault, bury); failed || err != nil {
		return failed, err
	}
	if f.done != nil {
		f.done()
	}
	n.give(&results)
	return false, nil
}

func (n *node) runFunction(f *function, value any) (results emission.Results, fault *Failure) {
	defer caught(&fault)
	results = f.run(value)
	n.admit(&results)
	return results, nil
}

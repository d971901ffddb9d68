package stage

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
	"wallarooapi/internal/trace"
	pb "wallarooapi/internal/workerpb"
)

// visit is a visit of a call.
type visit struct {
	sequence  uint64
	timestamp int64
	ordinal   uint64
	skip      *pb.Skip
	message   pb.Visit
}

func visitsInTurn(a, b *visit) int {
	return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.message.GetId(), b.message.GetId()))
}

// takeVisits lets a state step take visits.
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

// takeVisit takes the visit that is the frame at hand.
func (x *Executor) takeVisit() (*visit, error) {
	f := &x.frame
	if f.Count != 1 || f.Encoding != frame.Plain || f.HasAbsent() || x.keyed.bucket == nil {
		return nil, damaged(fmt.Errorf("a frame of visits has %d values of encoding %d", f.Count, f.Encoding))
	}
	ordinal := x.count(1)
	taken := &visit{sequence: f.Sequence, timestamp: f.TimestampMs, ordinal: ordinal, skip: x.skips[ordinal]}
	if err := proto.Unmarshal(f.Values, &taken.message); err != nil {
		return nil, damaged(fmt.Errorf("the value of a frame of visits is no Visit: %w", err))
	}
	return taken, nil
}

// Visited returns what the visits of the last call came to.
func (x *Executor) Visited() []*pb.Visited {
	visited := x.visited
	x.visited = nil
	return visited
}

// runVisit runs a visit for all keys of the steps that take it.
func (x *Executor) runVisit(v *visit) error {
	x.sequence, x.timestamp, x.fromPort = v.sequence, v.timestamp, frame.DeadLetterPort
	x.keyed.entries = x.keyed.entries[:0]
	for _, n := range x.nodes {
		if n.stateful == nil || !n.stateful.visits[v.message.GetName()] {
			continue
		}
		if v.skip != nil {
			x.keyed.hasNoKey = true
			n.buryBytes(v.skip.GetCode(), v.message.GetMetadata(), frame.Plain, v.skip.GetReason(), "")
			x.keyed.hasNoKey = false
			continue
		}
		if err := n.visitKeys(v); err != nil {
			return err
		}
	}
	return x.err
}

// visitKeys runs a visit for each key that the log has, or will have, a state of, in the order of their bytes.
func (n *node) visitKeys(v *visit) error {
	table := n.x.keyed.bucket.Table(n.stateful.port)
	var entries []*state.Entry
	table.Entries(func(entry *state.Entry) {
		if entry.IsKept() {
			entries = append(entries, entry)
		}
	})
	slices.SortFunc(entries, func(a, b *state.Entry) int { return cmp.Compare(a.Key, b.Key) })
	count := &pb.Visited{Id: v.message.GetId(), Path: n.path, Keys: uint64(len(entries))}
	n.x.visited = append(n.x.visited, count)
	for _, entry := range entries {
		n.x.flight.At(v.ordinal)
		n.x.flight.Advance()
		failed, err := n.visitKey(table, entry, v)
		if err != nil {
			return err
		}
		if failed {
			count.Failed++
		}
	}
	return n.x.err
}

// visitKey runs the visitor on the state of a key.
func (n *node) visitKey(table *state.Table, entry *state.Entry, v *visit) (failed bool, err error) {
	x := n.x
	x.keyed.key = []byte(entry.Key)
	x.key = x.keyed.key
	if x.keyed.careful {
		x.save(entry)
	}
	given := &wa.Visit{Name: v.message.GetName(), Metadata: v.message.GetMetadata(), Key: x.keyed.key}
	single, many, persist, fault := n.computeVisit(given, entry.Value)
	if fault == nil && x.keyed.careful && !given.DeletesState() {
		if fault, err = x.inspect(n, entry, persist); err != nil {
			return false, err
		}
	}
	if fault != nil {
		if !x.keyed.careful {
			return false, n.rollBack()
		}
		n.buryBytes(fault.Code, v.message.GetMetadata(), frame.Plain, fault.Reason, fault.Traceback)
		return true, x.restore(n, table, entry, false)
	}
	switch {
	case given.DeletesState():
		table.Drop(entry.Key)
	case persist:
		table.Touch(entry)
	}
	n.forward(single)
	for _, item := range many {
		n.forward(item)
	}
	return false, nil
}

func (n *node) computeVisit(given *wa.Visit, value any) (single any, many []any, persist bool, fault *Failure) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			single, many, fault = nil, nil, newFailure(codeOf(r), reason, stack)
		}
	}()
	if n.step.Kind == declaration.StateComputation {
		single, persist = n.step.Compute.(wa.StateVisitor).Visit(given, value)
		return n.admit(single), nil, persist, nil
	}
	many, persist = n.step.Multi.(wa.StateVisitorMulti).Visit(given, value)
	return nil, n.admitAll(many), persist, nil
}

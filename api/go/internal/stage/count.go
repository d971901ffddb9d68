package stage

import (
	"maps"
	"slices"

	pb "wallarooapi/internal/workerpb"
)

// account is a copy of the counts of a call at its last release. If the call processes messages again, it continues to
// count from there.
type account struct {
	counts  []count
	visited []*pb.Visited
}

// count has the counts of a node: messages that it has received, emitted and failed on.
type count struct {
	in, out, dead uint64
	more          map[string]uint64 // further counts by the name of the counter
}

func (c count) clone() count {
	c.more = maps.Clone(c.more)
	return c
}

// add increments a counter of the node by its name. The runtime declares the names (plan/counter.py).
func (n *node) add(name string) {
	if n.more == nil {
		n.more = map[string]uint64{}
	}
	n.more[name]++
}

// account returns a copy of the counts since the last call of Counts and Visited.
func (x *Executor) account() account {
	counts := make([]count, len(x.nodes))
	for i, n := range x.nodes {
		counts[i] = n.count.clone()
	}
	return account{counts, slices.Clone(x.visited)}
}

// resume sets the counts to an earlier copy.
func (x *Executor) resume(a account) {
	for i, c := range a.counts {
		x.nodes[i].count = c.clone()
	}
	x.visited = slices.Clone(a.visited)
}

// Reset discards the counts and the outputs that have not been emitted, after a call has failed.
func (x *Executor) Reset() {
	x.emit = func(uint16, int32, []byte) error { return nil }
	x.flush()
	x.Counts()
	x.Visited()
}

// Counts returns how many messages each step has received, emitted and failed on since the last call of Counts. A
// message that crosses a shuffle is counted by the step that receives it. A message to another stage of the same task
// is counted by the step that emits it. The nodes that pass messages between stages (KEY, SEND, RECEIVE) are no steps,
// and count only dead letters.
func (x *Executor) Counts() []*pb.StepCount {
	counts := make([]*pb.StepCount, 0, len(x.nodes))
	for _, n := range x.nodes {
		switch n.kind {
		case pb.NodeKind_NODE_KIND_KEY, pb.NodeKind_NODE_KIND_SEND, pb.NodeKind_NODE_KIND_RECEIVE:
			n.in, n.out = 0, 0
		}
		if n.in+n.out+n.dead > 0 || len(n.more) > 0 {
			counts = append(counts, &pb.StepCount{
				Path: n.path, MessagesIn: n.in, MessagesOut: n.out, DeadLetters: n.dead, More: n.more,
			})
		}
		n.count = count{}
	}
	return counts
}

package stage

import pb "wallarooapi/internal/workerpb"

// Reset forgets outputs that were not sent and counts, after a call that did not end well.
func (x *Executor) Reset() {
	x.emit = func(uint16, int32, []byte) error { return nil }
	x.flush()
	x.Counts()
	x.Visited()
}

// Counts returns what each step got, made and failed on since the last call. What goes to a shuffle is counted
// where it arrives, and what goes to another stage where it was made: there only dead letters count.
func (x *Executor) Counts() []*pb.StepCount {
	counts := make([]*pb.StepCount, 0, len(x.nodes))
	for _, n := range x.nodes {
		switch n.kind {
		case pb.NodeKind_NODE_KIND_KEY, pb.NodeKind_NODE_KIND_SEND, pb.NodeKind_NODE_KIND_RECEIVE:
			n.in, n.out = 0, 0
		}
		if n.in+n.out+n.dead > 0 {
			counts = append(counts, &pb.StepCount{Path: n.path, MessagesIn: n.in, MessagesOut: n.out, DeadLetters: n.dead})
		}
		n.in, n.out, n.dead = 0, 0, 0
	}
	return counts
}

package stage

import (
	"cmp"

	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
)

// arrival is an event that a bucket call processes in order: a message of a state step or window (with a node), a visit,
// or a tick (with neither node nor visit). Visits and ticks apply to many keys.
type arrival struct {
	node      *node
	visit     *pb.Visit
	sequence  uint64
	timestamp int64
	ordinal   uint64
	key       []byte
	message   any
	skip      *pb.Skip // not for a message
}

// rank orders arrivals with the same sequence number: ticks precede visits, and visits precede messages.
func (a *arrival) rank() int {
	switch {
	case a.node != nil:
		return 2
	case a.visit != nil:
		return 1
	}
	return 0
}

// inOrder compares arrivals by sequence number and rank. Ticks are also sorted by time, visits by id, and messages by
// their order in the frames.
func inOrder(a, b *arrival) int {
	if order := cmp.Compare(a.sequence, b.sequence); order != 0 {
		return order
	}
	order := cmp.Compare(a.rank(), b.rank())
	if order == 0 && a.node == nil {
		order = cmp.Or(cmp.Compare(a.visit.GetId(), b.visit.GetId()), cmp.Compare(a.timestamp, b.timestamp))
	}
	return cmp.Or(order, cmp.Compare(a.ordinal, b.ordinal))
}

// buryTurn makes a dead letter of a visit or tick that must not be processed.
func (n *node) buryTurn(a *arrival) {
	n.x.keyed.hasNoKey = true
	n.buryBytes(a.skip.GetCode(), a.visit.GetMetadata(), frame.Plain, a.skip.GetReason(), "")
	n.x.keyed.hasNoKey = false
}

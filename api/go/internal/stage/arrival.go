package stage

import (
	"cmp"

	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
)

// arrival is an event that a bucket call processes in order: a message of a window step (with a node), a visit, or a
// tick (with neither node nor visit). Visits and ticks apply to many keys.
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

func (a *arrival) isTick() bool { return a.node == nil && a.visit == nil }

// inOrder compares arrivals by sequence number. At the same number, ticks precede messages and visits. Ticks are sorted
// by time, and visits by id.
func inOrder(a, b arrival) int {
	if order := cmp.Compare(a.sequence, b.sequence); order != 0 {
		return order
	}
	switch {
	case a.isTick() && b.isTick():
		return cmp.Compare(a.timestamp, b.timestamp)
	case a.isTick():
		return -1
	case b.isTick():
		return 1
	}
	return cmp.Compare(a.visit.GetId(), b.visit.GetId())
}

// buryTurn makes a dead letter of a visit or tick that must not be processed.
func (n *node) buryTurn(a *arrival) {
	n.x.keyed.hasNoKey = true
	n.buryBytes(a.skip.GetCode(), a.visit.GetMetadata(), frame.Plain, a.skip.GetReason(), "")
	n.x.keyed.hasNoKey = false
}

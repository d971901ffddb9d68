package stage

import (
	"cmp"

	pb "wallarooapi/internal/workerpb"
)

// arrival is a message of a window step, or a tick if node is nil.
type arrival struct {
	node      *node
	sequence  uint64
	timestamp int64
	ordinal   uint64
	key       []byte
	message   any
	skip      *pb.Skip // only for a tick
}

// inOrder compares arrivals by sequence number. At the same number, ticks precede messages, and ticks are sorted by
// time.
func inOrder(a, b arrival) int {
	if order := cmp.Compare(a.sequence, b.sequence); order != 0 {
		return order
	}
	switch {
	case a.node == nil && b.node == nil:
		return cmp.Compare(a.timestamp, b.timestamp)
	case a.node == nil:
		return -1
	case b.node == nil:
		return 1
	}
	return 0
}

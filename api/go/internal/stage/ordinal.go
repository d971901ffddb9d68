package stage

import pb "wallarooapi/internal/workerpb"

// Begin begins a call. Its messages are counted from 0. Messages that are listed in skips are not processed.
func (x *Executor) Begin(index uint64, skips []*pb.Skip) {
	x.ordinal, x.skips = 0, nil
	x.flight.Begin(index)
	if len(skips) == 0 {
		return
	}
	x.skips = make(map[uint64]*pb.Skip, len(skips))
	for _, skip := range skips {
		x.skips[skip.GetOrdinal()] = skip
	}
}

// count counts messages of the call and returns the ordinal of the first of them.
func (x *Executor) count(messages int) (ordinal uint64) {
	ordinal = x.ordinal
	x.ordinal += uint64(messages)
	return ordinal
}

// enter counts the next message of the call and records that it is in flight. It returns the skip entry if the message
// must be skipped.
func (x *Executor) enter() *pb.Skip { return x.enterAt(x.count(1)) }

// enterAt is enter for a message that already has an ordinal.
func (x *Executor) enterAt(ordinal uint64) *pb.Skip {
	if skip := x.skips[ordinal]; skip != nil {
		return skip
	}
	x.flight.At(ordinal)
	return nil
}

package stage

import pb "wallarooapi/internal/workerpb"

// Begin begins a call: its messages are counted from 0, and those that skips name are not run.
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

// count returns the ordinal of the first of the next messages of the call.
func (x *Executor) count(messages int) (ordinal uint64) {
	ordinal = x.ordinal
	x.ordinal += uint64(messages)
	return ordinal
}

// enter counts the next message of the call and notes that it is in flight; it returns why it must not run, if so.
func (x *Executor) enter() *pb.Skip { return x.enterAt(x.count(1)) }

// enterAt is enter for a message that has its ordinal.
func (x *Executor) enterAt(ordinal uint64) *pb.Skip {
	if skip := x.skips[ordinal]; skip != nil {
		return skip
	}
	x.flight.At(ordinal)
	return nil
}

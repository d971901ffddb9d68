package stage

import pb "wallarooapi/internal/workerpb"

// Begin begins the call with this index. Its messages get ordinals, the numbers from 0. skips lists the ordinals of
// messages that must not be processed, because they have ended or hung a worker before. They become dead letters.
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

// count assigns ordinals to the next messages of the call and returns the first ordinal.
func (x *Executor) count(messages int) (ordinal uint64) {
	ordinal = x.ordinal
	x.ordinal += uint64(messages)
	return ordinal
}

// enter assigns an ordinal to the next message and records that this message is in flight. If the message must not be
// processed, enter returns the reason, and records nothing.
func (x *Executor) enter() *pb.Skip { return x.enterAt(x.count(1)) }

// enterAt does the same as enter for a message that already has an ordinal.
func (x *Executor) enterAt(ordinal uint64) *pb.Skip {
	if skip := x.skips[ordinal]; skip != nil {
		return skip
	}
	x.flight.At(ordinal)
	return nil
}

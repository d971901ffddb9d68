package stage

import (
	"cmp"
	"slices"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
)

// feedBucket processes the frames of one part of a BucketCall in the order of their sequence numbers. Messages and ticks
// for windows wait for runWindows at the end of the part, unless runsWindowsInTurn: then all are processed in one order.
func (x *Executor) feedBucket(parts [][]byte, emit Emit) error {
	inOrder, err := x.isInOrder(parts)
	if err != nil {
		return damaged(err)
	}
	if !inOrder || x.runsWindowsInTurn() {
		x.emit, x.err = emit, nil
		return x.attended(func() error { return x.runTurns(parts) })
	}
	for _, frames := range parts {
		if err := x.feed(frames, emit); err != nil {
			return err
		}
	}
	return nil
}

// runsWindowsInTurn reports whether window messages are processed between those of other state steps, in one order.
// Otherwise the window messages come last.
func (x *Executor) runsWindowsInTurn() bool { return x.keyed.ordered && x.hasWindows && x.hasStates }

// isInOrder reports whether the frames can be processed one by one: their messages for state steps are in the order of
// sequence numbers, and no frame is a visit or a tick for timed steps.
func (x *Executor) isInOrder(parts [][]byte) (bool, error) {
	last := uint64(0)
	for _, frames := range parts {
		for len(frames) > 0 {
			span, rest, err := frame.ReadSpan(frames)
			if err != nil {
				return false, err
			}
			frames = rest
			if span.Port == frame.VisitPort || span.Port == frame.TickPort && len(x.timed) > 0 {
				return false, nil
			}
			if span.Count == 0 || x.isOfWindow(span.Port) {
				continue
			}
			if !span.IsInOrder || span.First < last {
				return false, nil
			}
			last = span.Last
		}
	}
	return true, nil
}

// isOfWindow reports whether messages to a port are for a window step.
func (x *Executor) isOfWindow(port uint16) bool {
	n := x.entries[port]
	return n != nil && n.stateful != nil && n.stateful.windows != nil
}

// overlapping is a frame of a state step whose sequence numbers may overlap with those of other frames.
type overlapping struct {
	frame   frame.Frame
	node    *node
	ordinal uint64   // of the first message in the frame
	starts  []uint32 // start of each value
	types   codec.Types
	next    int          // index of the first unread message
	ahead   map[int]read // messages that were deserialized before their turn
}

// read is a deserialized message, or the failure to deserialize it.
type read struct {
	message any
	err     error
}

// place says where a message is: at an index of one of several frames.
type place struct {
	sequence     uint64
	frame, index uint32
}

// inTurn orders messages by sequence number. Messages with one number keep the order of the frames.
func inTurn(a, b place) int {
	if a.sequence != b.sequence {
		return cmp.Compare(a.sequence, b.sequence)
	}
	if a.frame != b.frame {
		return cmp.Compare(a.frame, b.frame)
	}
	return cmp.Compare(a.index, b.index)
}

// runTurns processes the messages of overlapping frames, visits, and ticks for timed steps, in one order. A message is
// decoded only when its turn comes, after earlier messages of its frame. Until then only its bytes are in memory.
func (x *Executor) runTurns(parts [][]byte) error {
	frames, places, turns, err := x.takeFrames(parts)
	if err != nil {
		return err
	}
	slices.SortFunc(places, inTurn)
	slices.SortStableFunc(turns, inOrder)
	slices.SortStableFunc(x.arrivals, inOrder)
	last := (*overlapping)(nil)
	for _, at := range places {
		for len(turns) > 0 && turns[0].sequence <= at.sequence {
			if err := x.runTurnInOrder(&turns[0]); err != nil {
				return err
			}
			turns, last = turns[1:], nil
		}
		if has, err := x.runArrivalsBefore(at.sequence); err != nil {
			return err
		} else if has {
			last = nil
		}
		if o := frames[at.frame]; o != last {
			last, x.frame = o, o.frame
			x.keyed.entries = slices.Grow(x.keyed.entries[:0], len(o.frame.Keys))[:len(o.frame.Keys)]
		}
		if err := x.runInTurn(last, int(at.index)); err != nil {
			return err
		}
	}
	x.frame = frame.Frame{}
	for i := range turns {
		if err := x.runTurnInOrder(&turns[i]); err != nil {
			return err
		}
	}
	return nil
}

// runTurnInOrder runs a visit or tick, after the window messages before it.
func (x *Executor) runTurnInOrder(t *arrival) error {
	if _, err := x.runArrivalsBefore(t.sequence); err != nil {
		return err
	}
	return x.runTurn(t)
}

// runArrivalsBefore processes the collected window messages and ticks with lower sequence numbers. It does nothing if
// window messages come last (see runsWindowsInTurn). has reports whether it has processed any.
func (x *Executor) runArrivalsBefore(sequence uint64) (has bool, err error) {
	if !x.runsWindowsInTurn() {
		return false, nil
	}
	end := 0
	for end < len(x.arrivals) && x.arrivals[end].sequence < sequence {
		end++
	}
	if end == 0 {
		return false, nil
	}
	arrivals := x.arrivals[:end]
	x.arrivals = x.arrivals[end:]
	x.frame, x.fromPort = frame.Frame{}, frame.DeadLetterPort
	return true, x.runArrivals(arrivals)
}

// takeFrames reads the frames of a call. It returns those with messages for state steps, the places of these messages,
// and the visits and ticks. Messages for windows are collected in x.arrivals.
func (x *Executor) takeFrames(parts [][]byte) (frames []*overlapping, places []place, turns []arrival, err error) {
	for _, data := range parts {
		for len(data) > 0 {
			if data, err = x.frame.Read(data); err != nil {
				return nil, nil, nil, damaged(err)
			}
			if x.frame.Port == frame.TickPort {
				if tick := x.tick(); len(x.timed) > 0 {
					turns = append(turns, tick)
				}
				continue
			}
			if x.frame.Port == frame.VisitPort {
				taken, err := x.takeVisit()
				if err != nil {
					return nil, nil, nil, err
				}
				turns = append(turns, taken)
				continue
			}
			n, err := x.entry()
			if err != nil {
				return nil, nil, nil, err
			}
			if x.frame.Count == 0 {
				continue
			}
			if n.stateful.windows != nil {
				x.decoder.Reset()
				if err := x.takeWindow(n); err != nil {
					return nil, nil, nil, err
				}
				continue
			}
			if err := x.checkKeyed(n); err != nil {
				return nil, nil, nil, err
			}
			for i := range x.frame.Count {
				places = append(places, place{x.frame.SequenceOf(i), uint32(len(frames)), uint32(i)})
			}
			frames = append(frames, x.keepFrame(n))
		}
	}
	return frames, places, turns, nil
}

// keepFrame moves the current frame out of the executor, so that its messages can be read later, and assigns ordinals
// to them.
func (x *Executor) keepFrame(n *node) *overlapping {
	o := &overlapping{frame: x.frame, node: n, ordinal: x.count(x.frame.Count), ahead: map[int]read{}}
	o.starts = make([]uint32, 1, x.frame.Count+1)
	x.frame = frame.Frame{}
	start := uint32(0)
	for i := range o.frame.Count {
		start += uint32(o.frame.Lengths.At(i))
		o.starts = append(o.starts, start)
	}
	return o
}

// runInTurn processes message i of an overlapping frame, which is the current frame.
func (x *Executor) runInTurn(o *overlapping, i int) error {
	n := o.node
	x.fromPort, x.sequence, x.timestamp = frame.DeadLetterPort, x.frame.SequenceOf(i), x.frame.TimestampOf(i)
	position := int(x.frame.KeyIndexes.At(i))
	x.keyed.entries[position] = nil // a message of another frame may have changed the entry of the key
	skip := n.arrive(position, o.ordinal+uint64(i))
	found := x.readInTurn(o, i, skip)
	switch {
	case skip != nil:
		n.burySkipped(skip, found.message, o.value(i))
	case found.err != nil:
		n.buryUnread(n.stateful.form, o.value(i), found.err)
	default:
		if err := n.runMessage(x.keyed.bucket.Table(n.stateful.port), position, found.message); err != nil {
			return err
		}
	}
	return x.err
}

// readInTurn deserializes message i of an overlapping frame. Before that it deserializes the earlier messages of the
// frame, one of which may have the type description. It keeps those whose turn has not come.
func (x *Executor) readInTurn(o *overlapping, i int, skip *pb.Skip) (found read) {
	if o.frame.Encoding != codec.Native {
		if skip == nil {
			found.message, found.err = o.node.stateful.form.Decode(o.frame.Encoding, o.value(i))
		}
		return found
	}
	if i < o.next {
		found = o.ahead[i]
		delete(o.ahead, i)
		return found
	}
	x.decoder.Exchange(&o.types)
	defer x.decoder.Exchange(&o.types)
	for ; o.next <= i; o.next++ {
		if x.enterAt(o.ordinal+uint64(o.next)) != nil {
			found = read{message: x.pass(o.value(o.next))}
		} else {
			found.message, found.err = x.decoder.Decode(codec.Native, o.value(o.next))
		}
		if o.next < i {
			o.ahead[o.next] = found
		}
	}
	return found
}

func (o *overlapping) value(i int) []byte {
	return o.frame.Values[o.starts[i]:o.starts[i+1]:o.starts[i+1]]
}

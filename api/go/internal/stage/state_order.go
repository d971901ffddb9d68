package stage

import (
	"slices"

	"wallarooapi/internal/frame"
)

// feedBucket processes the frames of one part of a BucketCall in the order of their sequence numbers. Messages and
// ticks for windows wait until runWindows processes them at the end of the part. But if runsWindowsInTurn is true, all
// are processed in one order.
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

// runsWindowsInTurn reports whether the stage has both windows and other state steps. Then their messages are processed
// in one order, in which their results leave. Otherwise the window messages come last.
func (x *Executor) runsWindowsInTurn() bool { return x.hasWindows && x.hasStates }

// isInOrder reports whether the frames can be processed one by one. For this, their messages for state steps must be in
// the order of sequence numbers, and no frame may be a visit, or a tick for timed steps.
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

// runTurns processes messages of state steps, visits, and ticks for timed steps in one order, independently of the order
// of the frames. If runsWindowsInTurn, it does the same with messages and ticks of windows.
func (x *Executor) runTurns(parts [][]byte) error {
	turns, err := x.takeFrames(parts)
	if err != nil {
		return err
	}
	slices.SortFunc(turns, inOrder)
	x.frame, x.fromPort = frame.Frame{}, frame.DeadLetterPort
	windows := []windowRun(nil)
	if x.runsWindowsInTurn() {
		windows = x.windowRuns()
	}
	for _, t := range turns {
		x.keyed.entries = append(x.keyed.entries[:0], nil) // a message of another step may have changed the entry of the key
		run := x.runTurn
		if t.node != nil {
			run = x.runInTurn
		}
		if err := run(t); err != nil {
			return err
		}
		if err := runOn(windows, t); err != nil {
			return err
		}
	}
	return nil
}

// takeFrames reads the frames of a call. It returns all that runTurns processes in one order. Messages and ticks for
// windows that come last are collected in x.arrivals.
func (x *Executor) takeFrames(parts [][]byte) (turns []*arrival, err error) {
	forWindows := &x.arrivals
	if x.runsWindowsInTurn() {
		forWindows = &turns
	}
	for _, data := range parts {
		for len(data) > 0 {
			if data, err = x.frame.Read(data); err != nil {
				return nil, damaged(err)
			}
			switch x.frame.Port {
			case frame.TickPort:
				tick := x.tick()
				*forWindows = append(*forWindows, tick)
				if forWindows != &turns {
					turns = append(turns, tick)
				}
				continue
			case frame.VisitPort:
				taken, err := x.takeVisit()
				if err != nil {
					return nil, err
				}
				turns = append(turns, taken)
				continue
			}
			n, err := x.entry()
			if err != nil {
				return nil, err
			}
			if x.frame.Count == 0 {
				continue
			}
			x.decoder.Reset()
			to := &turns
			if n.stateful.windows != nil {
				to = forWindows
			}
			if err := x.take(n, to); err != nil {
				return nil, err
			}
		}
	}
	return turns, nil
}

// runInTurn processes a message of a state step that take has read. It does nothing for a message of a window.
func (x *Executor) runInTurn(t *arrival) error {
	if t.node.stateful.windows != nil {
		return nil
	}
	x.sequence, x.timestamp, x.keyed.key, x.key = t.sequence, t.timestamp, t.key, t.key
	x.flight.At(t.ordinal)
	if err := t.node.runMessage(x.keyed.bucket.Table(t.node.stateful.port), 0, t.message); err != nil {
		return err
	}
	return x.err
}

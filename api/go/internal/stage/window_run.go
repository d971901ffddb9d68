package stage

import (
	"errors"
	"iter"
	"slices"
	"time"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/window"
	pb "wallarooapi/internal/workerpb"
)

// moment is the format of times in error texts.
const moment = "2006-01-02T15:04:05.000Z"

// newWindow makes the fields of a window step.
func newWindow(step *declaration.Step, d *pb.Node, form valueReader) (*stateful, error) {
	windows, err := window.Of(step, d.GetWatermarks())
	if err != nil {
		return nil, &Failure{Code: "I901", Reason: err.Error()}
	}
	return &stateful{state: step.State, port: uint16(d.GetStatePort()), windows: windows, form: form}, nil
}

// tick reads the tick in the current frame. It is processed later, together with messages.
func (x *Executor) tick() *arrival {
	return &arrival{sequence: x.frame.Sequence, timestamp: x.frame.TimestampMs, ordinal: x.ordinal, skip: x.enter()}
}

// take reads the messages of the current frame, which are for a state step or a window, and adds them to arrivals. They
// are processed when all frames of the call have been read.
func (x *Executor) take(n *node, arrivals *[]*arrival) error {
	f := &x.frame
	if err := x.checkKeyed(n); err != nil {
		return err
	}
	data, made := f.Values, make([]arrival, f.Count) // one allocation for all messages
	for i := 0; i < f.Count && x.err == nil; i++ {
		length := f.Lengths.At(i)
		value := data[:length:length]
		data = data[length:]
		ordinal := x.ordinal
		x.fromPort, x.sequence, x.timestamp = frame.DeadLetterPort, f.SequenceOf(i), f.TimestampOf(i)
		message, ok := n.takeOne(int(f.KeyIndexes.At(i)), x.count(1), value)
		if !ok {
			continue
		}
		if n.stateful.windows != nil && n.buryIfOutOfTime(message) {
			continue
		}
		made[i] = arrival{
			node: n, sequence: x.sequence, timestamp: x.timestamp, ordinal: ordinal, key: x.keyed.key, message: message,
		}
		*arrivals = append(*arrivals, &made[i])
	}
	return nil
}

// runWindows processes the collected messages and ticks of window steps in the order of their sequence numbers.
func (x *Executor) runWindows(emit Emit) error {
	arrivals := x.arrivals
	x.arrivals = nil
	if len(arrivals) == 0 {
		return nil
	}
	x.emit, x.err, x.fromPort = emit, nil, frame.DeadLetterPort
	slices.SortFunc(arrivals, inOrder)
	return x.attended(func() error {
		runs := x.windowRuns()
		for _, a := range arrivals {
			if err := runOn(runs, a); err != nil {
				return err
			}
		}
		return x.err
	})
}

func (x *Executor) windowRuns() (runs []windowRun) {
	for _, n := range x.nodes {
		if n.stateful != nil && n.stateful.windows != nil {
			table := x.keyed.bucket.Table(n.stateful.port)
			runs = append(runs, windowRun{n, table, n.calendarOf(table)})
		}
	}
	return runs
}

// runOn processes a message or tick in those window steps that it is for.
func runOn(runs []windowRun, a *arrival) error {
	for i := range runs {
		if a.visit != nil || a.node != nil && a.node != runs[i].n {
			continue
		}
		if err := runs[i].next(a); err != nil {
			return err
		}
	}
	return nil
}

// calendarOf returns the calendar of a window's table. The first call makes it.
func (n *node) calendarOf(table *state.Table) *calendar.Calendar[*window.KeyState] {
	made, _ := table.Calendar.(*calendar.Calendar[*window.KeyState])
	if made == nil {
		made = window.NewCalendar(n.stateful.windows, statesOf(table))
		table.Calendar = made
	}
	return made
}

// statesOf yields the states of all keys of a window step.
func statesOf(table *state.Table) iter.Seq[*window.KeyState] {
	return func(yield func(*window.KeyState) bool) {
		for entry := range table.Entries() {
			if !yield(entry.Value.(*window.KeyState)) {
				return
			}
		}
	}
}

// windowRun processes the messages and ticks of one window step in one bucket call.
type windowRun struct {
	n        *node
	table    *state.Table
	calendar *calendar.Calendar[*window.KeyState]
}

func (r *windowRun) next(a *arrival) error {
	x := r.n.x
	x.sequence, x.timestamp = a.sequence, a.timestamp
	if a.skip != nil {
		r.n.buryTurn(a)
		return nil
	}
	x.flight.At(a.ordinal)
	if a.node != nil {
		return r.message(a)
	}
	r.tick(a)
	return nil
}

// tick ends the windows that are due at a tick.
func (r *windowRun) tick(a *arrival) {
	for _, s := range r.calendar.Tick(a.timestamp, func(s *window.KeyState) { r.table.Touch(r.table.Get(s.Key)) }) {
		r.n.x.flight.Advance()
		given, isOver := r.n.stateful.windows.Tick(s, a.timestamp)
		if isOver {
			r.table.Drop(string(s.Key))
		} else {
			r.table.Touch(r.table.Get(s.Key))
			r.calendar.Enroll(s)
		}
		r.give(s.Key, given)
	}
}

// message adds a message to the state of its key. A failure leaves the state unchanged.
func (r *windowRun) message(a *arrival) error {
	x := r.n.x
	entry := r.table.Get(a.key)
	isNew := entry == nil
	if isNew {
		entry = r.table.Add(a.key, window.NewState(append([]byte{}, a.key...)))
	} else if x.keyed.careful {
		delete(x.keyed.saved, entry) // a tick may have changed the state
		if err := x.save(r.n, entry); err != nil {
			return r.n.notWritten(a.key, err)
		}
	}
	s := entry.Value.(*window.KeyState)
	x.keyed.key = s.Key
	given, isOver, fault := r.enter(s, isNew, a)
	bury := func(fault *Failure) { r.n.bury(fault.Code, a.message, fault.Reason, fault.Traceback) }
	if failed, err := r.n.settle(r.table, entry, isNew, true, isOver, fault, bury); failed || err != nil {
		r.calendar.Drop(s)
		if err == nil && !isNew {
			r.calendar.Enroll(entry.Value.(*window.KeyState))
		}
		return err
	}
	if isOver {
		r.calendar.Drop(s)
	} else {
		r.calendar.Enroll(s)
	}
	if len(given) > 0 {
		r.give(s.Key, given)
	}
	return nil
}

func (r *windowRun) enter(s *window.KeyState, isNew bool, a *arrival) (given []window.Result, isOver bool, fault *Failure) {
	defer caught(&fault)
	given, isOver = r.n.stateful.windows.Enter(s, isNew, a.message, a.timestamp)
	return given, isOver, nil
}

// give passes the results of windows to the successors of the step. A failed result becomes a dead letter.
func (r *windowRun) give(key []byte, given []window.Result) {
	n := r.n
	x := n.x
	for _, result := range given {
		if result.IsDropped {
			n.add("dropped_late")
			continue
		}
		x.key, x.keyed.key, x.timestamp = key, key, result.Time
		if result.IsStuck {
			n.buryBytes("C524", nil, frame.Plain, diagnostic.Of("C524", "step", n.name, "key", topology.ShowKey(key),
				"time", time.UnixMilli(result.Latest).UTC().Format(moment)).Message, "")
			continue
		}
		if result.Failed == "" {
			n.give(&result.Results)
			continue
		}
		n.bury("C517", result.Accumulator, diagnostic.Of("C517", "step", n.name, "key", topology.ShowKey(key),
			"error", result.Failed).Message, result.Stack)
	}
}

// write serializes a state. The bytes can be read without the bytes of other states, because the runtime moves states
// between the logs of buckets without the help of this program.
func (n *node) write(encoder *codec.Encoder, out []byte, value any) ([]byte, error) {
	alone := func(out []byte, value any) ([]byte, error) {
		encoder.Reset()
		return encoder.AppendState(out, value)
	}
	if s, ok := value.(*window.KeyState); ok {
		return s.Append(out, alone)
	}
	return alone(out, value)
}

// overheadOf returns the estimated memory in bytes that a state needs in addition to its serialized size.
func overheadOf(entry *state.Entry) int {
	if s, ok := entry.Value.(*window.KeyState); ok {
		return s.Overhead()
	}
	if entry.Time != nil {
		return entry.Time.Overhead()
	}
	return 0
}

// read reads a state that write has written. key is the key of the state.
func (n *node) read(decoder *codec.Decoder, encoding byte, key, data []byte) (any, error) {
	decode := func(data []byte) (any, error) { return decoder.Decode(encoding, data) }
	if n.stateful.windows == nil {
		return decode(data)
	}
	s, err := window.Read(append([]byte{}, key...), data, decode)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// runsAgain reports whether a call that failed with this error must run again, message by message, to find the cause.
func runsAgain(err error) bool {
	failed := (*Failure)(nil)
	return errors.Is(err, errRollback) || errors.As(err, &failed) && failed.IsOfState
}

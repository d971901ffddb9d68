package stage

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/state"
	"wallarooapi/internal/timing"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/window"
	pb "wallarooapi/internal/workerpb"
)

// errRollback means that a state computation failed and may have left its state partly changed.
var errRollback = errors.New("a state computation failed")

// rollBack returns errRollback, after which the call runs again message by message. It notes the step that has failed.
func (n *node) rollBack() error {
	n.x.keyed.failing = n.name
	return errRollback
}

// keyed has those fields of an executor that only stages with state steps use.
type keyed struct {
	bucket               *state.Bucket
	careful              bool // each state is serialized after each message
	checks               bool // a message that changes a state without persisting it fails
	maxBytes, pieceBytes int  // maximum size of a state, and of the pieces of a large state in the log

	notes   bool                    // record which state is read or written outside of messages (see Careful)
	saved   map[*state.Entry][]byte // serialized states for a rollback, as far as they can be serialized
	entries []*state.Entry          // for each key of the current frame, its state, or nil if it was not looked up yet
	key     []byte                  // key of the message in flight

	hasNoKey bool            // a dead letter gets no key, because it is about a tick or visit
	asked    *timing.Changes // timer changes of the running function
	failing  string          // name of the last step that was rolled back
}

// stateful has the fields of a node that only a state step or a window uses.
type stateful struct {
	functions declaration.Stateful // nil if the step is a window
	windows   window.Windows       // nil if the step is not a window
	state     *declaration.State
	port      uint16          // port of the state in state logs
	form      valueReader     // reads the messages
	allowed   map[string]bool // keys that may have a state; nil if every key may
	visits    map[string]bool // names of the visits that the step accepts
	timed     *timed          // nil if no step of the state has timers or a TTL
	ticks     bool            // this step has timers or a TTL
	timers    []string        // names of the timers that the step sets
}

func newStateful(step *declaration.Step, d *pb.Node, form valueReader) *stateful {
	s := &stateful{functions: step.Stateful, state: step.State, port: uint16(d.GetStatePort()), form: form}
	if step.State.Closed {
		s.allowed = make(map[string]bool, len(step.State.Keys))
		for _, key := range step.State.Keys {
			s.allowed[string(key.Bytes)] = true
		}
	}
	return s
}

// runState processes the current frame in a state step: each message with the state of its key.
func (x *Executor) runState(n *node) error {
	f := &x.frame
	if err := x.checkKeyed(n); err != nil {
		return err
	}
	table := x.keyed.bucket.Table(n.stateful.port)
	x.keyed.entries = append(x.keyed.entries[:0], make([]*state.Entry, len(f.Keys))...)
	data := f.Values
	for i := 0; i < f.Count && x.err == nil; i++ {
		length := f.Lengths.At(i)
		value := data[:length:length]
		data = data[length:]
		x.fromPort, x.sequence, x.timestamp = frame.DeadLetterPort, f.SequenceOf(i), f.TimestampOf(i)
		if err := n.runKeyed(table, int(f.KeyIndexes.At(i)), value); err != nil {
			return err
		}
	}
	return nil
}

// checkKeyed returns an error if the current frame is invalid for a state step.
func (x *Executor) checkKeyed(n *node) error {
	f := &x.frame
	switch {
	case x.keyed.bucket == nil || f.Flags&frame.FlagKeys == 0:
		return damaged(fmt.Errorf("a frame for state step %s has no keys", n.path))
	case f.Encoding == frame.Framed || f.HasAbsent():
		return damaged(fmt.Errorf("a frame for state step %s has values of encoding %d or none", n.path, f.Encoding))
	}
	return nil
}

// takeOne makes a message of the current frame the current message of the executor, and deserializes it. position is the
// index of its key in the frame. If the message must not be processed or cannot be read, it becomes a dead letter, and
// ok is false.
func (n *node) takeOne(position int, ordinal uint64, value []byte) (message any, ok bool) {
	n.in++
	n.x.keyed.key = n.x.frame.Keys[position]
	n.x.key = n.x.keyed.key
	if skip := n.x.enterAt(ordinal); skip != nil {
		n.skip(skip, value)
		return nil, false
	}
	return n.readBack(n.stateful.form, value)
}

// buryIfOutOfTime reports whether the time of the current message is out of the range for windows and timers. If so, the
// message becomes a dead letter.
func (n *node) buryIfOutOfTime(message any) bool {
	x := n.x
	if x.timestamp >= calendar.FirstMs && x.timestamp <= calendar.LastMs {
		return false
	}
	n.bury("C523", message, diagnostic.Of("C523", "step", n.name, "key", topology.ShowKey(x.keyed.key), "time", x.timestamp).Message, "")
	return true
}

// runKeyed deserializes a message and processes it with the state of its key. position is the index of the key in the
// frame.
func (n *node) runKeyed(table *state.Table, position int, value []byte) error {
	message, ok := n.takeOne(position, n.x.count(1), value)
	if !ok {
		return nil
	}
	return n.runMessage(table, position, message)
}

// runMessage processes the message in flight with the state of its key, after the timers of the key that are due before
// it. position is the index of the key in the frame.
func (n *node) runMessage(table *state.Table, position int, message any) error {
	x := n.x
	if n.stateful.timed != nil {
		if runs, err := n.wakeFor(table, position, message); !runs || err != nil {
			return err
		}
	}
	entry := x.keyed.entries[position]
	fresh := false
	if entry == nil {
		if n.refuses(message) {
			return nil
		}
		if entry = table.Get(x.keyed.key); entry == nil {
			if entry = n.create(table, message); entry == nil {
				return nil
			}
			fresh = true
		}
		x.keyed.entries[position] = entry
	}
	if x.keyed.careful && (!fresh || x.keyed.checks) {
		_ = x.save(n, entry)
	}
	results, fault := n.computeState(message, entry.Value)
	bury := func(fault *Failure) { n.bury(fault.Code, message, fault.Reason, fault.Traceback) }
	if failed, err := n.settle(table, entry, fresh, results.Persist, false, fault, bury); failed || err != nil {
		return err
	}
	if n.stateful.timed != nil {
		n.stateful.timed.arrive(n, table, entry, message)
	}
	n.give(&results)
	return nil
}

// settle ends a call of user code with a state: it marks a changed state to be written, or deletes the state. If user
// code has failed, or has left an invalid state, settle calls bury, which makes a dead letter, and restores the state.
// If states were not saved (keyed.careful is false), it returns errRollback instead.
func (n *node) settle(table *state.Table, entry *state.Entry, fresh, persist, deletes bool, fault *Failure, bury func(*Failure)) (failed bool, err error) {
	x := n.x
	if fault == nil && x.keyed.careful && !deletes {
		if fault, err = x.inspect(n, entry, persist); err != nil {
			return false, err
		}
	}
	switch {
	case fault != nil && !x.keyed.careful:
		return false, n.rollBack()
	case fault != nil:
		bury(fault)
		return true, x.restore(n, table, entry, fresh)
	case deletes:
		table.Drop(entry.Key)
	case persist:
		table.Touch(entry)
	}
	return false, nil
}

// skip makes a dead letter of a message that must not be processed. It reads the message nevertheless, because later
// messages may need its type description. Meanwhile no message is in flight.
func (n *node) skip(skip *pb.Skip, value []byte) {
	if n.x.frame.Encoding == codec.Native {
		n.x.flight.Outside()
		if message := n.x.decoder.Pass(value); message != nil && codec.ReadsWithoutCode(reflect.TypeOf(message)) {
			n.buryShown(skip.GetCode(), message, skippedPreview(message), skip.GetReason(), "")
			return
		}
	}
	n.buryBytes(skip.GetCode(), value, n.x.frame.Encoding, skip.GetReason(), "")
}

// refuses reports whether the key of the message in flight may have no state, because the state permits only declared
// keys. If so, the message becomes a dead letter.
func (n *node) refuses(message any) bool {
	key := n.x.keyed.key
	isRefused := n.stateful.allowed != nil && !n.stateful.allowed[string(key)]
	if isRefused {
		n.bury("C502", message, diagnostic.Of("C502", "step", n.name, "key", topology.ShowKey(key),
			"state", n.stateful.state.Name).Message, "")
	}
	return isRefused
}

// create creates the state for the key of the message in flight. It returns nil if the state cannot be built.
func (n *node) create(table *state.Table, message any) (entry *state.Entry) {
	defer n.rescue(message)
	return table.Add(n.x.keyed.key, n.stateful.state.Builder.Build())
}

// computeState calls the function of a step for a message. If the state has timers or a TTL, the state counts as
// changed even if the function does not persist it.
func (n *node) computeState(message, value any) (results emission.Results, fault *Failure) {
	defer caught(&fault)
	var call *timing.Changes
	if n.stateful.timed != nil {
		call = timing.NewChanges(n.x.timestamp, n.stateful.timers)
		n.x.keyed.asked = call
	}
	results = n.stateful.functions.Compute(call, message, value)
	n.admit(&results)
	results.Persist = results.Persist || call != nil
	return results, nil
}

// save serializes the state of a key before its first message, so that restore can undo a failed message. A state that
// was never persisted may be impossible to serialize. Then save returns an error, and restore removes the state.
func (x *Executor) save(n *node, entry *state.Entry) error {
	if _, known := x.keyed.saved[entry]; known {
		return nil
	}
	serialized, err := n.write(codec.NewEncoder(), nil, entry.Value)
	if err == nil {
		x.keyed.saved[entry] = serialized
	}
	return err
}

// inspect checks the state of a key after a message. With persist, the state must be serializable. Without persist, the
// state must be unchanged, if CheckPersist was called. fault says which rule the message has broken. A valid state is
// saved for restore.
func (x *Executor) inspect(n *node, entry *state.Entry, persist bool) (fault *Failure, err error) {
	now, notWritten := n.write(codec.NewEncoder(), nil, entry.Value)
	if notWritten != nil {
		if persist {
			fault = notSerializable(n.name, entry.Value, notWritten)
		}
		return fault, nil
	}
	if fault := x.checkSize(n, entry, len(now)); fault != nil {
		if persist || entry.IsKept() {
			return fault, nil
		}
		return nil, nil
	}
	if before, known := x.keyed.saved[entry]; known && x.keyed.checks && !persist {
		changed, err := differ(before, now)
		if err != nil {
			return nil, n.notReadable([]byte(entry.Key), err)
		}
		if changed {
			key := topology.ShowKey(x.keyed.key)
			return newFailure("C510", diagnostic.Of("C510", "step", n.name, "key", key).Message, ""), nil
		}
	}
	x.keyed.saved[entry] = now
	return nil, nil
}

// differ reports whether two serialized states differ in more than the order of map entries.
func differ(before, now []byte) (bool, error) {
	if bytes.Equal(before, now) {
		return false, nil
	}
	// A map may be serialized in any order, so compare the values.
	var values [2]any
	for i, serialized := range [2][]byte{before, now} {
		var err error
		if values[i], err = codec.NewDecoder().Decode(codec.NewEncoder().Encoding(), serialized); err != nil {
			return false, err
		}
	}
	return !reflect.DeepEqual(values[0], values[1]), nil
}

// restore resets the state of a key to the state before the message in flight.
func (x *Executor) restore(n *node, table *state.Table, entry *state.Entry, fresh bool) error {
	saved, known := x.keyed.saved[entry]
	if fresh || !known {
		table.Remove(entry.Key)
		clear(x.keyed.entries) // which contain the removed entry
		return nil
	}
	// The state may keep the bytes from which it is read, and change them.
	value, err := n.read(codec.NewDecoder(), codec.NewEncoder().Encoding(), []byte(entry.Key), bytes.Clone(saved))
	if err != nil {
		return n.notReadable([]byte(entry.Key), err)
	}
	if n.stateful.windows == nil {
		codec.FillMaps(value, n.stateful.state.Builder.Build())
	}
	entry.Value = value
	return nil
}

// note records which state the program now reads or writes, for an error message if this ends the process. Only careful
// calls (see Careful) do this.
func (n *node) note(done string, key []byte) {
	n.x.flight.Note(fmt.Sprintf("%s the state of step %q, key %s", done, n.name, topology.ShowKey(key)))
}

// notSerializable returns the failure of a message that has made its state impossible to serialize. The state of a
// window step has the type of the accumulator that failed.
func notSerializable(step string, value any, err error) *Failure {
	name := fmt.Sprintf("%T", value)
	if failed := (*codec.Error)(nil); errors.As(err, &failed) {
		name = failed.Type
	}
	return newFailure("C504", diagnostic.Of("C504", "step", step, "type", name,
		"error", err, "fix", "").Message+"; "+codec.Remedy(err), codec.StackOf(err))
}

// notWritten returns the failure for a state that cannot be written while no message is in flight.
func (n *node) notWritten(key []byte, err error) *Failure {
	return &Failure{Code: "C511", Reason: diagnostic.Of("C511", "step", n.name, "key", topology.ShowKey(key), "error", err).Message,
		Traceback: codec.StackOf(err), IsOfState: true}
}

// notReadable returns the failure for a state that cannot be read back.
func (n *node) notReadable(key []byte, err error) *Failure {
	return newFailure("C507", diagnostic.Of("C507", "key", topology.ShowKey(key), "error", err).Message, codec.StackOf(err))
}

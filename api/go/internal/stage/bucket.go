package stage

import (
	"errors"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/piece"
	"wallarooapi/internal/state"
)

const changeBytes = 1 << 20 // size at which an entry of a state log is closed

// OutputFrame is one frame of messages that leave the stage in a bucket call (see Emit).
type OutputFrame struct {
	Port   uint16
	Bucket int32
	Frame  []byte
}

// BucketCall processes the messages of one bucket in one micro-batch, in one or more parts. A part ends with Release or
// Finish, which return its outputs. Until then they are kept, because the part may have to be processed again.
type BucketCall struct {
	x        *Executor
	bucket   *state.Bucket
	rebuild  func() (*state.Bucket, error)
	parts    [][]byte // frames of the current part
	outputs  []OutputFrame
	released [][][]byte // frames of the parts whose outputs have been sent
	account  account    // counts of the call up to the last release
}

// NewCall begins a call on a bucket with the committed states. rebuild makes another copy of this bucket. It is called
// at most once, after a state computation has failed or a state could not be serialized.
func (x *Executor) NewCall(bucket *state.Bucket, rebuild func() (*state.Bucket, error)) *BucketCall {
	c := &BucketCall{x: x, bucket: bucket, rebuild: rebuild}
	x.keyed.careful = x.keyed.checks || x.keyed.notes
	x.keyed.saved = map[*state.Entry][]byte{}
	return c
}

// Careful sets whether later calls are careful. A careful call serializes each state after each message. If this fails,
// the message that has changed the state is still in flight. A careful call also records which state it reads or writes
// while no message is in flight.
func (x *Executor) Careful(is bool) {
	x.keyed.notes = is
	if is {
		x.flight.Note("")
	}
}

// CheckPersist makes a dead letter (C510) of each message that changes a state without persisting it. This is slow.
func (x *Executor) CheckPersist() { x.keyed.checks = true }

// Run processes the messages of a part of the call. Each piece consists of whole frames, which must not change until
// the call has ended.
func (c *BucketCall) Run(pieces ...[]byte) error {
	c.parts = pieces
	c.x.keyed.bucket = c.bucket
	err := c.x.feedBucket(pieces, c.keep)
	if !errors.Is(err, errRollback) {
		return err
	}
	return c.replay()
}

// Release ends a part and returns its outputs, before the call has ended. The call continues with another Run.
func (c *BucketCall) Release() ([]OutputFrame, error) {
	err := c.again(func() error { return c.close(c.keep) })
	if err != nil {
		return nil, err
	}
	outputs := c.outputs
	c.released, c.parts, c.outputs = append(c.released, c.parts), nil, nil
	c.account = c.x.account()
	return outputs, nil
}

// again calls the function end, which ends a part. If end fails and the message at fault is not known, the part is
// processed once more, message by message, and end is called for a second time.
func (c *BucketCall) again(end func() error) error {
	err := end()
	if !runsAgain(err) || c.x.keyed.careful {
		return err
	}
	if err := c.replay(); err != nil {
		return err
	}
	return end()
}

// replay processes all messages of the call again, on another copy of the committed states. In the current part it
// saves each state before a message changes it, so that only the message that fails becomes a dead letter.
func (c *BucketCall) replay() error {
	bucket, err := c.rebuild()
	if err != nil {
		return err
	}
	c.x.Reset()
	c.x.ordinal, c.x.arrivals = 0, nil
	c.bucket, c.outputs, c.x.keyed.bucket = bucket, nil, bucket
	if err := c.repeat(); err != nil {
		return err
	}
	c.x.keyed.careful, c.x.keyed.saved = true, map[*state.Entry][]byte{}
	return c.x.feedBucket(c.parts, c.keep)
}

// repeat rebuilds the states after a failure: it processes again, on the committed states, the messages whose outputs
// this call has already released. It sends and counts nothing, because that was done before.
func (c *BucketCall) repeat() error {
	drop := func(uint16, int32, []byte) error { return nil }
	for _, parts := range c.released {
		err := c.x.feedBucket(parts, drop)
		if err == nil {
			err = c.close(drop)
		}
		if errors.Is(err, errRollback) {
			return &Failure{Code: "W430", Reason: diagnostic.Of("W430", "step", c.x.keyed.failing).Message}
		}
		if err != nil {
			return err
		}
		c.x.Reset()
	}
	c.x.resume(c.account)
	return nil
}

func (c *BucketCall) keep(port uint16, bucket int32, bytes []byte) error {
	c.outputs = append(c.outputs, OutputFrame{port, bucket, bytes})
	return nil
}

// Finish ends the call. It returns the outputs of the last part, the entries of the state log for the changed states
// (for all states if whole is set), and the bucket. The caller must set the new version of the bucket.
//
// If a state cannot be serialized, all messages are processed again, with a check of the state after each message. This
// finds the message that caused the failure.
func (c *BucketCall) Finish(whole bool) (outputs []OutputFrame, changes [][]byte, bucket *state.Bucket, err error) {
	err = c.again(func() (err error) {
		changes, err = c.settle(whole)
		return err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	c.x.keyed.bucket = nil
	return c.outputs, changes, c.bucket, nil
}

// close ends a part: it processes the messages and ticks that were collected for windows, and emits the last outputs.
func (c *BucketCall) close(emit Emit) error {
	if err := c.x.runWindows(emit); err != nil {
		return err
	}
	c.x.flush()
	return c.x.err
}

// settle ends the last part and returns the entries of the state log.
func (c *BucketCall) settle(whole bool) (changes [][]byte, err error) {
	if err := c.close(c.keep); err != nil {
		return nil, err
	}
	c.x.flight.Outside()
	err = c.x.attended(func() error {
		for table := range c.bucket.Tables() {
			frames, err := c.x.changes(table, whole)
			if err != nil {
				return err
			}
			changes = append(changes, frames...)
		}
		return nil
	})
	return changes, err
}

// changes returns the entries of the state log for the changed states of a table, or for all its states if whole is
// set.
func (x *Executor) changes(table *state.Table, whole bool) ([][]byte, error) {
	w := x.newStateWriter(table)
	if err := table.Changes(whole, w.write); err != nil {
		return nil, err
	}
	for key := range table.Dropped() {
		if whole {
			continue
		}
		if err := w.drop(key); err != nil {
			return nil, err
		}
	}
	err := w.end(nil)
	return w.entries, err
}

// stepOf returns the first step of the stage that uses a state, given by its port in state logs. It returns nil if no
// step uses the state.
func (x *Executor) stepOf(port uint16) *node {
	for _, n := range x.nodes {
		if n.stateful != nil && n.stateful.port == port {
			return n
		}
	}
	return nil
}

// Loader builds a bucket from its state log.
type Loader struct {
	x       *Executor
	bucket  *state.Bucket
	decoder *codec.Decoder
	frame   frame.Frame
	pieces  piece.Joiner
}

// NewLoader makes a loader with an empty bucket.
func (x *Executor) NewLoader() *Loader {
	return &Loader{x: x, bucket: state.NewBucket(), decoder: codec.NewDecoder()}
}

// Bucket returns the loaded bucket.
func (l *Loader) Bucket() *state.Bucket { return l.bucket }

// Load reads the next entry of the log. A later state of a key replaces an earlier one.
func (l *Loader) Load(entry []byte) error {
	rest, err := l.frame.Read(entry)
	switch {
	case err != nil:
		return damaged(err)
	case len(rest) > 0 || l.frame.Flags&frame.FlagKeys == 0 || l.frame.Encoding == frame.Framed:
		return damaged(errors.New("an entry of a state log is not one frame of keyed states"))
	}
	owner := l.x.stepOf(l.frame.Port)
	if owner == nil {
		return damaged(errors.New("a state log has a state that the stage does not use"))
	}
	l.decoder.Reset()
	l.x.flight.Outside()
	return l.x.attended(func() error { return l.loadStates(owner) })
}

// End must be called after the last entry of the log. It returns an error if pieces of a state are missing.
func (l *Loader) End() error {
	if err := l.pieces.End(); err != nil {
		return damaged(err)
	}
	return nil
}

func (l *Loader) loadStates(owner *node) error {
	table := l.bucket.Table(l.frame.Port)
	var prototype any
	if l.frame.Encoding != codec.Custom && owner.stateful.windows == nil {
		prototype = owner.stateful.state.Builder.Build()
	}
	if piece.Is(&l.frame) {
		serialized, err := l.pieces.Take(&l.frame)
		if err != nil {
			return damaged(err)
		}
		if serialized == nil {
			return nil
		}
		return l.loadState(owner, table, prototype, l.frame.Keys[0], serialized)
	}
	if err := l.End(); err != nil {
		return err
	}
	data := l.frame.Values
	for i := range l.frame.Count {
		length := l.frame.Lengths.At(i)
		serialized := data[:length:length]
		data = data[length:]
		key := l.frame.Keys[l.frame.KeyIndexes.At(i)]
		if l.frame.IsAbsent(i) {
			table.Remove(string(key))
			continue
		}
		if err := l.loadState(owner, table, prototype, key, serialized); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loader) loadState(owner *node, table *state.Table, prototype any, key, serialized []byte) error {
	if l.x.keyed.notes {
		owner.note("read", key)
	}
	time, encoding, serialized, err := l.readTime(key, serialized)
	if err != nil {
		return owner.notReadable(key, err)
	}
	value, err := owner.read(l.decoder, encoding, key, serialized)
	if err != nil {
		return owner.notReadable(key, err)
	}
	if prototype != nil && encoding == codec.Native {
		codec.FillMaps(value, prototype)
	}
	entry := table.Get(key)
	if entry == nil {
		entry = table.Add(key, value)
	}
	entry.Value, entry.Time = value, time
	table.Resize(entry, len(serialized)-l.decoder.Described(), overheadOf(entry))
	entry.Logged = len(serialized)
	return nil
}

package stage

import (
	"bytes"
	"strings"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/piece"
	"wallarooapi/internal/state"
	"wallarooapi/internal/topology"
)

// MaxStateBytes is the default of the maximum size of the state of one key in bytes. A call makes copies of a state, so
// it needs a multiple of this memory.
const MaxStateBytes = 256 << 20

// maxValueBytes is the maximum length of a value with its key. A frame has room for such a value after other messages.
var maxValueBytes = 48 << 20

const (
	smallerFix = "let the generator return smaller messages"
	splitFix   = "split it, e.g. let a ComputationMulti return several smaller messages"
	shortenFix = "let the partition function return a shorter key, e.g. a digest"
	forgetFix  = "give the messages more keys, or let the state forget what it no longer needs; it stays as it was"
)

// LimitStates sets the maximum size of the state of one key in bytes. A state that is already larger must not grow.
func (x *Executor) LimitStates(bytes int) { x.keyed.maxBytes = bytes }

// buryIfTooLarge reports whether a message with its key is too large to leave the stage. Then it becomes a dead letter.
func (n *node) buryIfTooLarge(message any, size, keySize int) bool {
	if size+keySize <= maxValueBytes {
		return false
	}
	n.bury("C525", message, strings.TrimPrefix(tooLarge(n.name, size, keySize, splitFix).Message, n.name+": "), "")
	return true
}

// tooLarge returns the finding for a message that is too large to leave a stage. It names the key if the key takes more
// than half of the limit, and otherwise the value. hint is the remedy for a value.
func tooLarge(step string, size, keySize int, hint string) diagnostic.Diagnostic {
	if keySize > maxValueBytes/2 {
		return diagnostic.Of("C525", "step", step, "what", "its key", "size", keySize, "limit", maxValueBytes, "hint", shortenFix)
	}
	return diagnostic.Of("C525", "step", step, "what", "its value", "size", size, "limit", maxValueBytes, "hint", hint)
}

// checkSize returns a failure if a state exceeds the limit. A state that was already larger in the log passes, unless
// it has grown.
func (x *Executor) checkSize(n *node, entry *state.Entry, size int) *Failure {
	if size <= max(x.keyed.maxBytes, entry.Logged) {
		return nil
	}
	found := diagnostic.Of("C525", "step", n.name, "what", "the state of key "+topology.ShowKey([]byte(entry.Key)), "size", size,
		"limit", x.keyed.maxBytes, "hint", forgetFix)
	return &Failure{Code: found.Code, Reason: strings.TrimPrefix(found.Message, n.name+": "), IsOfState: true}
}

// stateWriter writes the states of one table as entries of the state log.
type stateWriter struct {
	x       *Executor
	n       *node
	encoder *codec.Encoder
	builder frame.Builder
	entries [][]byte
	table   *state.Table
	timed   *timed // nil if the state has neither timers nor a TTL
}

func (x *Executor) newStateWriter(table *state.Table) *stateWriter {
	encoder := codec.NewEncoder()
	builder := frame.Builder{Port: table.Port, Encoding: encoder.Encoding()}
	timed := x.timedOf(table.Port)
	if timed != nil {
		builder.Encoding = codec.Timed
	}
	return &stateWriter{x: x, n: x.stepOf(table.Port), encoder: encoder, builder: builder, table: table, timed: timed}
}

// write adds the state of a key to the current entry, or to a new entry if the current one would become too large.
func (w *stateWriter) write(entry *state.Entry) error {
	if w.x.keyed.notes {
		w.n.note("wrote", []byte(entry.Key))
	}
	key, before := []byte(entry.Key), len(w.builder.Buffer())
	buffer := w.builder.Buffer()
	if w.timed != nil {
		buffer = entry.Time.Append(buffer, w.encoder.Encoding())
	}
	start := len(buffer)
	buffer, err := w.n.write(w.encoder, buffer, entry.Value)
	if err != nil {
		return w.n.notWritten(key, err)
	}
	size, body := len(buffer)-before, len(buffer)-start
	isLarge := size > w.x.keyed.pieceBytes || w.builder.BodyBytes()+size+len(key) > changeBytes
	if fault := w.x.checkSize(w.n, entry, body); fault != nil {
		return fault
	}
	if w.builder.Count() > 0 && isLarge {
		written := bytes.Clone(buffer[before:])
		if err := w.end(key); err != nil {
			return err
		}
		buffer = append(w.builder.Buffer(), written...)
	}
	w.table.Resize(entry, body-w.encoder.Described(), overheadOf(entry))
	entry.Logged = body
	if size > w.x.keyed.pieceBytes && w.builder.Count() == 0 {
		return w.cut(key, buffer)
	}
	w.builder.UseKey(w.builder.AddKey(key))
	w.builder.Extend(buffer)
	return nil
}

// cut splits a large state into pieces, and adds an entry for each. The current entry must be empty.
func (w *stateWriter) cut(key, serialized []byte) error {
	entries, err := piece.Write(w.builder.Port, w.builder.Encoding, key, serialized, w.x.keyed.pieceBytes)
	if err != nil {
		return w.n.notWritten(key, err)
	}
	w.entries = append(w.entries, entries...)
	return nil
}

// drop adds the removal of a key's state to the current entry.
func (w *stateWriter) drop(key string) error {
	w.builder.UseKey(w.builder.AddKey([]byte(key)))
	w.builder.AddAbsent()
	if w.builder.BodyBytes() > changeBytes {
		return w.end([]byte(key))
	}
	return nil
}

// end closes the current entry. key is the last key in it, for an error.
func (w *stateWriter) end(key []byte) error {
	if w.builder.Count() == 0 {
		return nil
	}
	entry, err := w.builder.Frame()
	if err != nil {
		return w.n.notWritten(key, err)
	}
	w.entries = append(w.entries, entry)
	w.builder.Reset()
	return nil
}

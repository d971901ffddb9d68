// Package codec turns messages and states into bytes and back: with the program's Serialize and Deserialize when it
// set them, else by itself.
package codec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	wa "wallarooapi"
	"wallarooapi/internal/known"
	"wallarooapi/internal/trace"
)

// The encodings of values that this worker writes, as in a frame's header.
const (
	Custom = 16 // what Serialize returned
	Native = 17 // a tag byte and the value
	Timed  = 18 // of a state: the time of its key, and a value of one of the others; see package timing
)

// Fix is the remedy for a type that cannot be serialized.
const Fix = "export its fields and leave out what has no bytes (chan, func, mutex), or give the type MarshalBinary and UnmarshalBinary, " +
	"or set wa.Serialize and wa.Deserialize to functions that cover it"

// TypedFix is the remedy for a typed program.
const TypedFix = "export its fields and leave out what has no bytes (chan, func, mutex), or give the type a Codec with stream.Register"

const (
	ownFix      = "correct wa.Serialize and wa.Deserialize: what one returns the other must read"
	ownTypedFix = "correct the Codec of the type: Decode must read what Encode returns"
)

// IsTyped is set in a program of package stream: its remedies are other ones.
var IsTyped atomic.Bool

// Remedy is the remedy for a value that could not be serialized.
func Remedy(err error) string {
	fix := Fix
	if IsTyped.Load() {
		fix = TypedFix
	}
	if own := (*Error)(nil); errors.As(err, &own) && own.Fix != "" {
		return own.Fix
	}
	if err == nil || !strings.Contains(err.Error(), "not registered for interface") {
		return fix
	}
	own := "set wa.Serialize and wa.Deserialize to functions that cover it"
	if IsTyped.Load() {
		own = "give the type with the field a Codec with Encode and Decode of your own (stream.Register)"
	}
	return "call gob.Register with a value of that type in an init function, or " + own
}

// Error says why a value cannot be serialized or read. Code: C504.
type Error struct {
	Type   string
	Reason string
	Stack  string // of a panic in user code
	Fix    string // empty: the usual one
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Encoder writes the values of one frame after the other; it is used by one goroutine at a time.
type Encoder struct {
	serialize func(any) []byte
	gob       gobEncoder
}

// NewEncoder makes an encoder of the form that the program chose.
func NewEncoder() *Encoder { return &Encoder{serialize: wa.Serialize} }

// Encoding returns the encoding of the bytes that Append writes.
func (e *Encoder) Encoding() byte {
	if e.serialize != nil {
		return Custom
	}
	return Native
}

// Reset begins a new frame: later bytes are read without the earlier ones.
func (e *Encoder) Reset() { e.gob.reset() }

// Described returns the number of bytes that describe types, written since it was last asked.
func (e *Encoder) Described() (size int) {
	size, e.gob.described = e.gob.described, 0
	return size
}

// Append appends the bytes of a value. After an error out is as it was.
func (e *Encoder) Append(out []byte, value any) (result []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			result, err = out, &Error{Type: fmt.Sprintf("%T", value), Reason: "Serialize panicked: " + reason, Stack: stack}
		}
	}()
	if e.serialize == nil {
		return e.appendNative(out, value)
	}
	serialized := e.serialize(value)
	if serialized == nil {
		return out, &Error{Type: fmt.Sprintf("%T", value), Reason: "Serialize returned nil"}
	}
	return append(out, serialized...), nil
}

// AppendState appends the bytes of a state. It reads them back where the program has a form for them: an error of that
// names the message at fault, and not the next run.
func (e *Encoder) AppendState(out []byte, value any) ([]byte, error) {
	result, err := e.Append(out, value)
	if err != nil {
		return out, err
	}
	if _, ok := known.FormOf(pointedTo(reflect.TypeOf(value))); !ok && e.serialize == nil {
		return result, nil
	}
	if _, err := NewDecoder().Decode(e.Encoding(), result[len(out):]); err != nil {
		fix := ownFix
		if IsTyped.Load() {
			fix = ownTypedFix
		}
		return out, &Error{Type: fmt.Sprintf("%T", value), Reason: "it cannot be read back; " + err.Error(), Stack: StackOf(err), Fix: fix}
	}
	return result, nil
}

// StackOf returns the stack of the panic that caused an error, if any.
func StackOf(err error) string {
	if failed := (*Error)(nil); errors.As(err, &failed) {
		return failed.Stack
	}
	return ""
}

// Decoder reads the values of one frame after the other, all of them and in order; it is used by one goroutine at a time.
type Decoder struct {
	deserialize func([]byte) any
	gob         gobDecoder
}

// NewDecoder makes a decoder.
func NewDecoder() *Decoder { return &Decoder{deserialize: wa.Deserialize} }

// Reset begins a new frame.
func (d *Decoder) Reset() { d.gob.reset() }

// Described returns the number of bytes that describe types, read since it was last asked.
func (d *Decoder) Described() (size int) {
	size, d.gob.described = d.gob.described, 0
	return size
}

// Types are the types that a frame has described so far of its values.
type Types struct{ streams []*decodeStream }

// Exchange lets a decoder go on with a frame that it was in the middle of, and puts where it was in place of that.
func (d *Decoder) Exchange(types *Types) {
	d.gob.streams, types.streams = types.streams, d.gob.streams
}

// Decode reads a value of an encoding.
func (d *Decoder) Decode(encoding byte, data []byte) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			value, err = nil, &Error{Type: "a serialized value", Reason: "Deserialize panicked: " + reason, Stack: stack}
		}
	}()
	switch {
	case encoding == Native:
		return d.decodeNative(data)
	case encoding != Custom:
		return nil, &Error{Type: "a serialized value", Reason: fmt.Sprintf("encoding %d was not written by this SDK", encoding)}
	case d.deserialize == nil:
		return nil, &Error{Type: "a serialized value", Reason: "it was written with wa.Serialize, and wa.Deserialize is not set"}
	}
	value = d.deserialize(data)
	if value == nil {
		return nil, &Error{Type: "a serialized value", Reason: "Deserialize returned nil"}
	}
	return value, nil
}

// Pass reads a native value that is not to be run, in its turn: its type's description serves later ones. It returns nil
// for a value whose type has methods that would read it; they run only where the type may describe further ones.
func (d *Decoder) Pass(data []byte) any {
	if len(data) == 0 || data[0] == tagForm || data[0] == tagFormPointer {
		return nil
	}
	d.gob.passes = true
	defer func() { d.gob.passes = false }()
	value, _ := d.Decode(Native, data)
	return value
}

// Package codec serializes states, and messages between stages. It uses the program's wa.Serialize and wa.Deserialize
// if they are set, and otherwise the native format of this package. Messages between programs have built-in codecs.
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

// The encodings of values that this worker writes, as stored in the header of a frame.
const (
	Custom = 16 // the result of Serialize
	Native = 17 // a tag byte and the value
	Timed  = 18 // only for states: the time of the key, then a value in another encoding; see package timing
)

// Fix is the remedy for a type that cannot be serialized, in a program of Wallaroo's own API.
const Fix = "export its fields and leave out what has no bytes (chan, func, mutex), or give the type MarshalBinary and UnmarshalBinary, " +
	"or set wa.Serialize and wa.Deserialize to functions that cover it"

// TypedFix is the remedy in a program of package stream for a type that cannot be serialized.
const TypedFix = "export its fields and leave out what has no bytes (chan, func, mutex), or give the type a Codec with stream.Register"

const (
	ownFix      = "correct wa.Serialize and wa.Deserialize: what one returns the other must read"
	ownTypedFix = "correct the Codec of the type: Decode must read what Encode returns"
)

// IsTyped is set in a program of package stream. Errors then have TypedFix as the remedy.
var IsTyped atomic.Bool

// Remedy returns the remedy for a value that could not be serialized.
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

// Error is the reason why a value cannot be serialized or read. Its code is C504.
type Error struct {
	Type   string
	Reason string
	Stack  string // of a panic in user code
	Fix    string // empty for the usual remedy
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Encoder serializes the values of frames, one frame after the other. It is not safe for concurrent use.
type Encoder struct {
	serialize func(any) []byte
	gob       gobEncoder
}

// NewEncoder makes an encoder that uses wa.Serialize if the program has set it.
func NewEncoder() *Encoder { return &Encoder{serialize: wa.Serialize} }

// Encoding returns the encoding of the bytes that Append writes.
func (e *Encoder) Encoding() byte {
	if e.serialize != nil {
		return Custom
	}
	return Native
}

// Reset begins a new frame, which can be read without earlier frames.
func (e *Encoder) Reset() { e.gob.reset() }

// Described returns the number of bytes of type descriptions written since the last call of Described. The size of a
// state in memory is estimated without these bytes.
func (e *Encoder) Described() (size int) {
	size, e.gob.described = e.gob.described, 0
	return size
}

// Append appends the serialized value to out. After an error it returns out unchanged.
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

// AppendState is Append for a state. If code of the program serializes the state, AppendState also reads the bytes
// back. So a fault of this code is reported for the current message, and not at a restart.
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

// StackOf returns the stack of the panic that caused an error, or "" if no panic did.
func StackOf(err error) string {
	if failed := (*Error)(nil); errors.As(err, &failed) {
		return failed.Stack
	}
	return ""
}

// Decoder reads the values that an Encoder wrote. It must read all values of a frame in order, because the first value
// of a type describes this type. It is not safe for concurrent use.
type Decoder struct {
	deserialize func([]byte) any
	gob         gobDecoder
}

// NewDecoder makes a decoder that uses wa.Deserialize if the program has set it.
func NewDecoder() *Decoder { return &Decoder{deserialize: wa.Deserialize} }

// Reset begins a new frame.
func (d *Decoder) Reset() { d.gob.reset() }

// Described returns the number of bytes of type descriptions read since the last call of Described.
func (d *Decoder) Described() (size int) {
	size, d.gob.described = d.gob.described, 0
	return size
}

// Decode reads a value. encoding is Native or Custom, as in the header of the frame.
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

// Pass skips a native value that must not be processed, e.g. because it has ended a worker. It reads the type
// descriptions of the value, which later values of the frame may need. It returns the value for display, or nil if
// methods of the program are needed to read it. Pass calls such methods only if the value may describe further types.
func (d *Decoder) Pass(data []byte) any {
	if len(data) == 0 || data[0] == tagForm || data[0] == tagFormPointer {
		return nil
	}
	d.gob.passes = true
	defer func() { d.gob.passes = false }()
	value, _ := d.Decode(Native, data)
	return value
}

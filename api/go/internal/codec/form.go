package codec

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"wallarooapi/internal/known"
)

// appendForm writes a value with the codec that the program has registered for its type (known.Form). Without one, done
// is false.
func appendForm(out []byte, value any) (result []byte, done bool, err error) {
	t, tag := reflect.TypeOf(value), byte(tagForm)
	if t != nil && t.Kind() == reflect.Pointer {
		t, tag = t.Elem(), tagFormPointer
	}
	form, ok := known.FormOf(t)
	if !ok {
		return out, false, nil
	}
	if form.Unreadable != nil {
		return out, true, form.Unreadable
	}
	if tag == tagFormPointer && reflect.ValueOf(value).IsNil() {
		return out, true, &Error{Type: fmt.Sprintf("%T", value), Reason: "the pointer is nil"}
	}
	name := known.Name(t)
	if found, _ := known.Lookup(name); found != t {
		return out, true, unfound(t, value)
	}
	data, err := form.Encode(value)
	if err != nil {
		return out, true, &Error{Type: fmt.Sprintf("%T", value), Reason: err.Error()}
	}
	out = append(binary.AppendUvarint(append(out, tag), uint64(len(name))), name...)
	return append(out, data...), true, nil
}

// decodeForm reads bytes that appendForm wrote.
func decodeForm(tag byte, data []byte) (any, error) {
	name, rest, err := cutName(data)
	if err != nil {
		return nil, err
	}
	t, _ := known.Lookup(name)
	form, ok := known.FormOf(t)
	if !ok {
		return nil, &Error{Type: name, Reason: "this program has no codec for the type; stream.Register gives it one"}
	}
	value, err := form.Decode(rest, tag == tagFormPointer)
	if err != nil {
		return nil, &Error{Type: name, Reason: err.Error()}
	}
	return value, nil
}

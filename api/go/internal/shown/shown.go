// Package shown formats any value of a program as JSON for display, e.g. in a dead letter. Values that JSON cannot
// represent become texts.
package shown

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	deepest    = 32
	mostValues = 100_000
	cut        = "..."
)

// JSON returns a value as JSON for display. A type with its own JSON or text form is shown in this form. Structs are
// shown with all fields, maps sorted by key, bytes as a text or in hexadecimal digits, functions and channels as their
// type.
func JSON(value any) []byte { return made(value, false) }

// Plain shows a value as the function JSON does, but calls no method of the program, since such a method may be what
// ended a worker. Only times are shown by their own methods.
func Plain(value any) []byte { return made(value, true) }

func made(value any, isPlain bool) []byte {
	w := walk{left: mostValues, isPlain: isPlain}
	text, err := json.Marshal(w.plain(reflect.ValueOf(value), 0))
	if err != nil { // only if the user's own code returns wrong JSON for a field
		text, _ = json.Marshal(fmt.Sprintf("%T: %v", value, err))
	}
	return text
}

// walk is the conversion of one value. It limits the number of parts, so that a cyclic value is cut.
type walk struct {
	left    int
	isPlain bool
}

// plain converts a value to one that encoding/json writes without code of the program.
func (w *walk) plain(v reflect.Value, depth int) any {
	w.left--
	if !v.IsValid() {
		return nil
	}
	if depth > deepest || w.left < 0 {
		return cut
	}
	if !w.isPlain || v.Type().PkgPath() == "time" {
		if own, ok := ownForm(v); ok {
			return own
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return w.plain(v.Elem(), depth+1)
	case reflect.Struct:
		return w.fields(v, depth+1)
	case reflect.Map:
		return w.entries(v, depth+1)
	case reflect.Slice, reflect.Array:
		return w.items(v, depth+1)
	}
	return scalar(v)
}

func scalar(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return v.Uint()
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprint(f)
		}
		if v.Kind() == reflect.Float32 {
			return float32(v.Float())
		}
		return v.Float()
	case reflect.Complex64, reflect.Complex128:
		return fmt.Sprint(v.Complex())
	}
	return v.Type().String()
}

// ownForm converts a value by the methods with which its type defines a JSON or text form. ok is false if the type has
// no such methods, and for a value from an unexported field, whose methods cannot be called.
func ownForm(v reflect.Value) (form any, ok bool) {
	if !v.CanInterface() || (v.Kind() == reflect.Pointer && v.IsNil()) {
		return nil, false
	}
	defer func() {
		if r := recover(); r != nil { // a panic of the user's code
			form, ok = fmt.Sprintf("%s: %v", v.Type(), r), true
		}
	}()
	var text []byte
	var err error
	switch value := v.Interface().(type) {
	case proto.Message:
		text, err = protojson.Marshal(value)
	case json.Marshaler:
		text, err = value.MarshalJSON()
	case encoding.TextMarshaler:
		text, err = value.MarshalText()
		return string(text), err == nil
	default:
		return nil, false
	}
	return json.RawMessage(text), err == nil && json.Valid(text)
}

// fields returns the fields of a struct by name.
func (w *walk) fields(v reflect.Value, depth int) any {
	made := map[string]any{}
	for i := range v.NumField() {
		made[v.Type().Field(i).Name] = w.plain(v.Field(i), depth)
	}
	return made
}

// entries returns a map as an object, or as a list of pairs if different keys have the same text.
func (w *walk) entries(v reflect.Value, depth int) any {
	type pair struct {
		name       string
		key, value any
	}
	if v.IsNil() {
		return nil
	}
	var pairs []pair
	for each := v.MapRange(); each.Next(); {
		key := w.plain(each.Key(), depth)
		name, isText := key.(string)
		if !isText {
			text, _ := json.Marshal(key)
			name = string(text)
		}
		pairs = append(pairs, pair{name, key, w.plain(each.Value(), depth)})
	}
	made := map[string]any{}
	for _, p := range pairs {
		made[p.name] = p.value
	}
	if len(made) == len(pairs) {
		return made
	}
	slices.SortFunc(pairs, func(a, b pair) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	list := make([]any, len(pairs))
	for i, p := range pairs {
		list[i] = []any{p.key, p.value}
	}
	return list
}

// items returns the elements of a slice or array. Bytes become a text.
func (w *walk) items(v reflect.Value, depth int) any {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return nil
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		data := make([]byte, v.Len())
		for i := range data {
			data[i] = byte(v.Index(i).Uint())
		}
		return text(data)
	}
	list := []any{}
	for i := range v.Len() {
		if w.left < 0 {
			return append(list, cut)
		}
		list = append(list, w.plain(v.Index(i), depth))
	}
	return list
}

// text returns bytes as a text if all characters are printable, and otherwise in hexadecimal digits.
func text(data []byte) string {
	if !utf8.Valid(data) || bytes.ContainsFunc(data, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "0x" + hex.EncodeToString(data)
	}
	return string(data)
}

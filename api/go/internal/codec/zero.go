package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync"
)

// This file repairs values that encoding/gob loses. gob leaves out a pointer to a zero value, which is then read back
// as nil. It reads -0.0 in a field back as 0.0, and it refuses nil as an element of a slice, array or map. Therefore
// the encoder writes the numbers of such places before the value (its marks), and writes a pointer to a value in place
// of a nil element. Encoder and decoder number the places by the same walk through the value.

var visited sync.Map // reflect.Type → result of visits

// visits returns the indexes of those fields of a struct that a walk must visit. For any other type it returns an empty
// slice. If gob loses no value of the type, the result is nil, and a walk can skip the type.
func visits(t reflect.Type) []int {
	if before, ok := visited.Load(t); ok {
		return before.([]int)
	}
	var fields []int
	if isVisited(t, false, map[reflect.Type]bool{}) {
		fields = []int{}
		for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
			if field := t.Field(i); field.IsExported() && isVisited(field.Type, false, map[reflect.Type]bool{}) {
				fields = append(fields, i)
			}
		}
	}
	visited.Store(t, fields)
	return fields
}

// isVisited reports whether gob may lose a part of a value of type t. isElement is set for an element of a slice, array
// or map. outer contains the types around t.
func isVisited(t reflect.Type, isElement bool, outer map[reflect.Type]bool) bool {
	if t.Kind() == reflect.Pointer || outer[t] {
		return true
	}
	if isOpaque(t) {
		return false
	}
	outer[t] = true
	defer delete(outer, t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Float32, reflect.Float64:
		return !isElement
	case reflect.Slice, reflect.Array, reflect.Map:
		return isVisited(t.Elem(), true, outer)
	case reflect.Struct:
		for i := range t.NumField() {
			if isVisited(t.Field(i).Type, false, outer) {
				return true
			}
		}
	}
	return false
}

// isOpaque reports whether a type has methods with which gob serializes its values.
func isOpaque(t reflect.Type) bool {
	return t.Kind() != reflect.Interface && methodOf(t, codingTypes) < len(codingTypes)
}

// appendMarks writes the numbers of the places that gob would lose, if there are any, and returns the value that the
// caller writes with gob. It returns an error for a value with a cycle, because gob would never finish.
func appendMarks(out []byte, value any) ([]byte, any, error) {
	root := reflect.Indirect(reflect.ValueOf(value))
	if !root.IsValid() || visits(root.Type()) == nil {
		return out, value, nil
	}
	w := walk{task: find}
	w.value(root, true)
	if !w.isFound && w.cycle == nil {
		return out, value, nil
	}
	w = walk{task: mark}
	w.value(root, true)
	if w.hasNil && w.cycle == nil {
		value, w.cycle = withoutNil(value, w.deepest+usualDepth)
	}
	if w.cycle != nil {
		return out, nil, &Error{Type: fmt.Sprintf("%T", value), Reason: fmt.Sprintf("it has a cycle: a %s leads back to itself", w.cycle)}
	}
	if len(w.marked) == 0 {
		return out, value, nil
	}
	out = binary.AppendUvarint(append(out, tagMarks), uint64(len(w.marked)))
	for _, number := range w.marked {
		out = binary.AppendUvarint(out, number)
	}
	return out, value, nil
}

// isLost reports whether gob would lose v, a float or pointer that a walk visits.
func isLost(v reflect.Value, isElement bool) bool {
	switch {
	case v.Kind() != reflect.Pointer:
		return v.Float() == 0 && math.Signbit(v.Float())
	case isElement:
		return v.IsNil()
	}
	return !v.IsNil() && isEmpty(v.Elem())
}

// restored sets v to the value that gob has lost: -0, a nil element, or a pointer to a zero value.
func restored(v reflect.Value, isElement bool) {
	switch {
	case v.Kind() != reflect.Pointer:
		v.SetFloat(math.Copysign(0, -1))
	case isElement:
		v.SetZero()
	case v.IsNil():
		v.Set(reflect.New(v.Type().Elem()))
	}
}

// withoutNil returns a copy of a value in which pointers to new values replace nil elements. If new values have nil
// elements of their own type, this has no end. Then the walk stops at the depth `lowest`, and withoutNil also returns
// the type.
func withoutNil(value any, lowest int) (any, reflect.Type) {
	into := addressable(reflect.ValueOf(value))
	if into.Kind() == reflect.Pointer {
		detach(into)
	}
	w := walk{task: replace, lowest: lowest}
	w.value(reflect.Indirect(into), true)
	return into.Interface(), w.cycle
}

// isEmpty reports whether v is a zero value, which gob leaves out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || isEmpty(v.Elem())
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Float32, reflect.Float64:
		return v.Float() == 0
	case reflect.Complex64, reflect.Complex128:
		return v.Complex() == 0
	}
	return v.IsZero()
}

// decodeMarked reads the numbers that appendMarks wrote and the value after them.
func (d *Decoder) decodeMarked(data []byte) (any, error) {
	count, rest, err := uvarint(data)
	w := walk{task: restore}
	for ; err == nil && count > 0; count-- {
		var number uint64
		number, rest, err = uvarint(rest)
		w.marked = append(w.marked, number)
	}
	if err != nil {
		return nil, err
	}
	value, err := d.decodeNative(rest)
	if err != nil || value == nil {
		return nil, err
	}
	root := reflect.ValueOf(value)
	isPointer := root.Kind() == reflect.Pointer
	if !isPointer {
		root = addressable(root).Addr()
	}
	w.value(root.Elem(), true)
	if isPointer {
		return value, nil
	}
	return root.Elem().Interface(), nil
}

// addressable returns a copy of a value that can be changed.
func addressable(v reflect.Value) reflect.Value {
	into := reflect.New(v.Type()).Elem()
	into.Set(v)
	return into
}

// detach replaces the target of v, a pointer, slice or map, by a copy.
func detach(v reflect.Value) {
	switch kind := v.Kind(); {
	case (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map) && v.IsNil():
	case kind == reflect.Pointer:
		v.Set(addressable(v.Elem()).Addr())
	case kind == reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
	case kind == reflect.Map:
		into := reflect.MakeMap(v.Type())
		for items := v.MapRange(); items.Next(); {
			into.SetMapIndex(items.Key(), items.Value())
		}
		v.Set(into)
	}
}

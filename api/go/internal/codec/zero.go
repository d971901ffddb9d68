package codec

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// encoding/gob leaves out a pointer to a zero value, which is then read back as nil. Therefore the numbers of such
// pointers are written before the value. Encoder and decoder number the pointers by the same walk through the value.

var pointing sync.Map // reflect.Type → whether its values contain pointers

// leadsToPointer reports whether a value of a type is or contains a pointer.
func leadsToPointer(t reflect.Type) bool {
	if before, ok := pointing.Load(t); ok {
		return before.(bool)
	}
	leads := pointsWithin(t, map[reflect.Type]bool{})
	pointing.Store(t, leads)
	return leads
}

func pointsWithin(t reflect.Type, outer map[reflect.Type]bool) bool {
	if isOpaque(t) {
		return false
	}
	if outer[t] {
		return true
	}
	outer[t] = true
	defer delete(outer, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		return true
	case reflect.Slice, reflect.Array, reflect.Map:
		return pointsWithin(t.Elem(), outer)
	case reflect.Struct:
		for i := range t.NumField() {
			if pointsWithin(t.Field(i).Type, outer) {
				return true
			}
		}
	}
	return false
}

// isOpaque reports whether values of a type serialize themselves.
func isOpaque(t reflect.Type) bool {
	return t.Kind() != reflect.Interface && methodOf(t, codingTypes) < len(codingTypes)
}

// appendZeros writes the numbers of pointers to zero values, if there are any. It returns an error for a value with a
// cycle, because gob would never finish.
func appendZeros(out []byte, value any) ([]byte, error) {
	root := reflect.Indirect(reflect.ValueOf(value))
	if !root.IsValid() || !leadsToPointer(root.Type()) {
		return out, nil
	}
	var numbers []uint64
	w := walk{meet: func(number uint64, pointer reflect.Value) {
		if !pointer.IsNil() && isEmpty(pointer.Elem()) {
			numbers = append(numbers, number)
		}
	}}
	w.value(root)
	if w.cycle != nil {
		return out, &Error{Type: fmt.Sprintf("%T", value), Reason: fmt.Sprintf("it has a cycle: a %s leads back to itself", w.cycle)}
	}
	if len(numbers) == 0 {
		return out, nil
	}
	out = binary.AppendUvarint(append(out, tagZeros), uint64(len(numbers)))
	for _, number := range numbers {
		out = binary.AppendUvarint(out, number)
	}
	return out, nil
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

// decodeZeros reads the numbers that appendZeros wrote and the value after them.
func (d *Decoder) decodeZeros(data []byte) (any, error) {
	count, rest, err := uvarint(data)
	numbers := map[uint64]bool{}
	for ; err == nil && count > 0; count-- {
		var number uint64
		if number, rest, err = uvarint(rest); err == nil {
			numbers[number] = true
		}
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
	w := walk{fills: true, meet: func(number uint64, pointer reflect.Value) {
		if pointer.IsNil() && numbers[number] {
			pointer.Set(reflect.New(pointer.Type().Elem()))
		}
	}}
	w.value(root.Elem())
	if isPointer {
		return value, nil
	}
	return root.Elem().Interface(), nil
}

func addressable(v reflect.Value) reflect.Value {
	into := reflect.New(v.Type()).Elem()
	into.Set(v)
	return into
}

// walk visits the pointers in a value, and ends early if it finds a cycle. The order of the visits does not depend on
// the targets of the pointers.
type walk struct {
	fills bool // whether meet may set pointers
	meet  func(number uint64, pointer reflect.Value)
	count uint64
	depth int
	outer map[place]bool // places that contain the current value; recorded only at depths above usualDepth
	cycle reflect.Type   // type of the value that contains itself; nil if no cycle was found
}

// place is the target of a pointer, map or slice.
type place struct {
	at   uintptr
	t    reflect.Type
	size int
}

// usualDepth is the depth up to which the walk does not look for cycles.
const usualDepth = 1000

func (w *walk) value(v reflect.Value) {
	if w.cycle != nil || !leadsToPointer(v.Type()) {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > usualDepth {
		defer w.enter(v)()
	}
	if w.cycle == nil {
		w.parts(v)
	}
}

// enter records that the walk is inside the target of v, a pointer, map or slice. The returned function ends this.
func (w *walk) enter(v reflect.Value) func() {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	at := place{t: v.Type()}
	switch v.Kind() {
	case reflect.Slice:
		at.size = v.Len()
		fallthrough
	case reflect.Pointer, reflect.Map:
		at.at = v.Pointer()
	}
	if at.at == 0 {
		return func() {}
	}
	if w.outer[at] {
		w.cycle = v.Type()
		return func() {}
	}
	if w.outer == nil {
		w.outer = map[place]bool{}
	}
	w.outer[at] = true
	return func() { delete(w.outer, at) }
}

func (w *walk) parts(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		number := w.count
		w.count++
		w.meet(number, v)
		if !v.IsNil() {
			w.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				w.value(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Map:
		w.items(v)
	case reflect.Interface:
		w.within(v)
	}
}

// items walks through the values of a map in the order of the keys.
func (w *walk) items(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, compare)
	for _, key := range keys {
		item := v.MapIndex(key)
		if w.fills {
			item = addressable(item)
		}
		w.value(item)
		if w.fills {
			v.SetMapIndex(key, item)
		}
	}
}

// within walks through the value in an interface, which gob never leaves out.
func (w *walk) within(v reflect.Value) {
	held := v.Elem()
	switch {
	case !held.IsValid():
	case held.Kind() == reflect.Pointer:
		if !held.IsNil() {
			w.value(held.Elem())
		}
	case w.fills && leadsToPointer(held.Type()):
		item := addressable(held)
		w.value(item)
		v.Set(item)
	default:
		w.value(held)
	}
}

// compare orders the keys of a map by their values.
func compare(a, b reflect.Value) int {
	switch a.Kind() {
	case reflect.Bool:
		return cmp.Compare(order(a.Bool()), order(b.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return cmp.Compare(a.Int(), b.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return cmp.Compare(a.Uint(), b.Uint())
	case reflect.Float32, reflect.Float64:
		return cmp.Compare(a.Float(), b.Float())
	case reflect.String:
		return strings.Compare(a.String(), b.String())
	case reflect.Array:
		return first(a.Len(), func(i int) int { return compare(a.Index(i), b.Index(i)) })
	case reflect.Struct:
		return first(a.NumField(), func(i int) int { return compare(a.Field(i), b.Field(i)) })
	case reflect.Interface:
		if a, b := a.Elem(), b.Elem(); a.IsValid() && b.IsValid() {
			return cmp.Or(strings.Compare(a.Type().String(), b.Type().String()), compare(a, b))
		}
		return cmp.Compare(order(!a.IsNil()), order(!b.IsNil()))
	}
	return 0
}

func first(count int, at func(int) int) int {
	for i := range count {
		if found := at(i); found != 0 {
			return found
		}
	}
	return 0
}

func order(is bool) int {
	if is {
		return 1
	}
	return 0
}

package codec

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
)

// walk visits the places in a value that encoding/gob may lose: pointers, and floats in fields (see zero.go). It ends
// early if it finds a cycle. The order of the visits does not depend on the targets of the pointers, so the encoder and
// the decoder give each place the same number. The parameter isElement of its methods is set for elements of slices,
// arrays and maps, for which gob writes zero values, too.
type walk struct {
	task    task
	count   uint64   // places visited
	marked  []uint64 // numbers of the places that gob loses
	hasNil  bool     // whether nil elements are among them
	isFound bool     // only for find: whether there is such a place
	depth   int
	deepest int
	lowest  int            // only for replace: the depth at which the walk ends
	outer   map[place]bool // places that contain the current value; recorded only at depths above usualDepth
	cycle   reflect.Type   // type of the value that contains itself; nil if no cycle was found
}

// task is the work that a walk does at the places that it visits. The tasks that change values need an addressable
// value.
type task int

const (
	find    task = iota // ends at the first place that gob loses, in any order
	mark                // collects the numbers of all such places
	replace             // sets nil elements to pointers, in copies of all values that lead to them
	restore             // sets the marked places in a value that gob has read
)

func (t task) changes() bool { return t == replace || t == restore }

// place identifies the target of a pointer, map or slice.
type place struct {
	at   uintptr
	t    reflect.Type
	size int
}

// usualDepth is the depth up to which the walk does not look for cycles.
const usualDepth = 1000

func (w *walk) value(v reflect.Value, isElement bool) {
	if w.cycle != nil || w.isFound || isElement && v.CanFloat() || visits(v.Type()) == nil {
		return
	}
	w.depth++
	w.deepest = max(w.deepest, w.depth)
	defer func() { w.depth-- }()
	if w.depth > usualDepth {
		defer w.enter(v)()
	}
	if w.cycle == nil {
		w.parts(v, isElement)
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

// parts visits a value: if it is a float or pointer, the task (find, mark, ...) is done there. Then parts visits the
// values that it contains.
func (w *walk) parts(v reflect.Value, isElement bool) {
	if w.task == replace {
		detach(v)
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		w.meet(v, isElement)
	case reflect.Pointer:
		w.meet(v, isElement)
		if !v.IsNil() {
			w.value(v.Elem(), isElement)
		}
	case reflect.Struct:
		for _, i := range visits(v.Type()) {
			w.value(v.Field(i), false)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i), true)
		}
	case reflect.Map:
		w.items(v)
	case reflect.Interface:
		w.within(v)
	}
}

// meet does the task of the walk at one place: v is a float or pointer.
func (w *walk) meet(v reflect.Value, isElement bool) {
	switch isMarked := len(w.marked) > 0 && w.marked[0] == w.count; {
	case w.task == find:
		w.isFound = isLost(v, isElement)
	case w.task == mark && isLost(v, isElement):
		w.marked, w.hasNil = append(w.marked, w.count), w.hasNil || isElement
	case w.task == replace && w.depth > w.lowest:
		w.cycle = v.Type()
	case w.task == replace && isElement && v.IsNil():
		v.Set(reflect.New(v.Type().Elem()))
	case w.task == restore && isMarked:
		w.marked = w.marked[1:]
		restored(v, isElement)
	}
	w.count++
}

// items walks through the values of a map in the order of the keys. It leaves out a NaN key, which no key equals.
func (w *walk) items(v reflect.Value) {
	if w.task == find {
		item := reflect.New(v.Type().Elem()).Elem()
		for items := v.MapRange(); items.Next() && !w.isFound; {
			item.SetIterValue(items)
			w.value(item, true)
		}
		return
	}
	keys := slices.DeleteFunc(v.MapKeys(), func(key reflect.Value) bool { return !v.MapIndex(key).IsValid() })
	slices.SortFunc(keys, compare)
	for _, key := range keys {
		item := v.MapIndex(key)
		if w.task.changes() {
			item = addressable(item)
		}
		w.value(item, true)
		if w.task.changes() {
			v.SetMapIndex(key, item)
		}
	}
}

// within walks through the value in an interface. gob never leaves out such a value.
func (w *walk) within(v reflect.Value) {
	held := v.Elem()
	if !held.IsValid() || visits(held.Type()) == nil {
		return
	}
	if w.task.changes() {
		held = addressable(held)
		defer v.Set(held)
	}
	if w.task == replace {
		detach(held)
	}
	if target := reflect.Indirect(held); target.IsValid() {
		w.value(target, true)
	}
}

// compare returns the order of two keys of a map, as cmp.Compare does, so that a walk visits the keys in a fixed order.
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
	case reflect.Complex64, reflect.Complex128:
		return cmp.Or(cmp.Compare(real(a.Complex()), real(b.Complex())), cmp.Compare(imag(a.Complex()), imag(b.Complex())))
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() {
			return compare(a.Elem(), b.Elem())
		}
		return cmp.Compare(order(!a.IsNil()), order(!b.IsNil()))
	case reflect.Array:
		return first(a.Len(), func(i int) int { return compare(a.Index(i), b.Index(i)) })
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() && a.CanInterface() {
			return a.Interface().(time.Time).Compare(b.Interface().(time.Time))
		}
		return first(a.NumField(), func(i int) int { return compare(a.Field(i), b.Field(i)) })
	case reflect.Interface:
		if a, b := a.Elem(), b.Elem(); a.IsValid() && b.IsValid() {
			return cmp.Or(strings.Compare(a.Type().String(), b.Type().String()), compare(a, b))
		}
		return cmp.Compare(order(!a.IsNil()), order(!b.IsNil()))
	}
	return 0
}

// first calls the function at with the numbers 0 to count-1, until a result is not 0. It returns this result, or 0 if
// all results are 0.
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

package codec

import (
	"encoding"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"wallarooapi/internal/known"
)

var (
	checked sync.Map // reflect.Type → error or nil
	closed  sync.Map // reflect.Type → bool

	// These are the interfaces that gob and fmt look for in a value. The order is that in which gob prefers them.
	writingTypes = []reflect.Type{reflect.TypeFor[gob.GobEncoder](), reflect.TypeFor[encoding.BinaryMarshaler]()}
	readingTypes = []reflect.Type{reflect.TypeFor[gob.GobDecoder](), reflect.TypeFor[encoding.BinaryUnmarshaler]()}
	codingTypes  = slices.Concat(writingTypes, readingTypes)
	showingTypes = []reflect.Type{
		reflect.TypeFor[fmt.Formatter](), reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[error](),
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](),
	}
)

// CheckType returns an error if values of a type cannot be serialized without wa.Serialize. It also refuses unexported
// fields: encoding/gob leaves them out silently, so that a state would be read back without them.
func CheckType(t reflect.Type) error {
	if form, ok := known.FormOf(pointedTo(t)); ok || t != nil && t.Implements(messageType) {
		return form.Unreadable
	}
	if before, ok := checked.Load(t); ok {
		err, _ := before.(error)
		return err
	}
	err := checkType(t, part{root: pointedTo(t)}, map[reflect.Type]bool{})
	if err == nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Pointer {
		err = fmt.Errorf("a %s is a pointer to a pointer; leave out one of the two", t)
	}
	checked.Store(t, err)
	return err
}

// CheckState is CheckType for a state. It also refuses a type of which the registered codec silently leaves out a
// field.
func CheckState(t reflect.Type) error {
	if form, ok := known.FormOf(pointedTo(t)); ok && form.Unreadable == nil {
		return form.Incomplete
	}
	return CheckType(t)
}

// pointedTo returns the target type of a pointer type, and any other type unchanged.
func pointedTo(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// part is a place within a type, e.g. `Items[].Done` for the field Done of the items of the field Items.
type part struct {
	root reflect.Type
	path string
}

func (p part) field(name string) part {
	if p.path != "" {
		name = p.path + "." + name
	}
	return part{p.root, name}
}

func (p part) String() string {
	if p.path == "" {
		return p.root.String()
	}
	return fmt.Sprintf("field %s of %s", p.path, p.root)
}

func (p part) item() part { return part{p.root, p.path + "[]"} }

// checkType is CheckType for a type within another type. The parameter at is the place in the other type, for the
// error. Types in seen are not checked again.
func checkType(t reflect.Type, at part, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	if isOpaque(t) {
		return checkMethods(t)
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
		if at.path == "" {
			return fmt.Errorf("values of type %s have no bytes", t)
		}
		return fmt.Errorf("field %s of %s is a %s, which has no bytes", at.path, at.root, t)
	case reflect.Pointer:
		return checkType(t.Elem(), at, seen)
	case reflect.Slice, reflect.Array:
		return checkType(t.Elem(), at.item(), seen)
	case reflect.Map:
		if err := checkType(t.Key(), at.item(), seen); err != nil {
			return err
		}
		return checkType(t.Elem(), at.item(), seen)
	case reflect.Struct:
		return checkFields(t, at, seen)
	}
	return nil
}

// checkMethods returns an error if a type has a method that writes its values, but not the matching one that reads
// them, or the reverse. It also checks that an embedded field does not provide these methods (see checkPromoted).
func checkMethods(t reflect.Type) error {
	writes, reads := methodOf(t, writingTypes), methodOf(t, readingTypes)
	names := [][]string{{"GobEncode", "GobDecode"}, {"MarshalBinary", "UnmarshalBinary"}}
	if writes == reads {
		return checkPromoted(t, names[writes], "")
	}
	if writes < len(names) {
		return fmt.Errorf("%s has %s and no %s, so it cannot be read", t, names[writes][0], names[writes][1])
	}
	return fmt.Errorf("%s has %s and no %s, so it is not written as it is read", t, names[reads][1], names[reads][0])
}

// methodOf returns the index of the first interface in forms that a type or a pointer to it implements, or len(forms)
// if there is none.
func methodOf(t reflect.Type, forms []reflect.Type) int {
	at := slices.IndexFunc(forms, func(form reflect.Type) bool {
		return t.Implements(form) || reflect.PointerTo(t).Implements(form)
	})
	if at < 0 {
		return len(forms)
	}
	return at
}

func checkFields(t reflect.Type, at part, seen map[reflect.Type]bool) error {
	for i := range t.NumField() {
		field := t.Field(i)
		isEmpty := field.Anonymous && field.Type.Kind() == reflect.Struct && field.Type.NumField() == 0
		if field.Name == "_" || isEmpty {
			continue
		}
		found := at.field(field.Name)
		if !field.IsExported() { // gob leaves out an embedded struct that is not exported with all its fields
			return fmt.Errorf("field %s of %s is not exported", found.path, at.root)
		}
		if err := checkType(field.Type, found, seen); err != nil {
			return err
		}
	}
	return nil
}

// NeedsNoCode reports whether values of a type can be serialized and shown without a call of the program's methods.
func NeedsNoCode(t reflect.Type) bool {
	return ReadsWithoutCode(t) && (t == nil || t.Implements(messageType) || needsNoCode(t, showingTypes))
}

// ReadsWithoutCode reports whether values of a type can be serialized without a call of the program's methods.
func ReadsWithoutCode(t reflect.Type) bool {
	return t == nil || t.Implements(messageType) || needsNoCode(t, codingTypes)
}

// needsNoCode reports whether no type within t needs methods of the program. A type needs them if it has a registered
// codec, implements an interface in asked, or is an interface, a channel or a function.
func needsNoCode(t reflect.Type, asked []reflect.Type) bool {
	return !leadsTo(t, map[reflect.Type]bool{}, func(t reflect.Type) (is, isKnown bool) {
		if _, ok := known.FormOf(t); ok {
			return true, true
		}
		if t.PkgPath() == "time" {
			return false, true
		}
		kind := t.Kind()
		is = methodOf(t, asked) < len(asked) || kind == reflect.Interface || kind == reflect.Chan || kind == reflect.Func
		return is, is
	})
}

// leadsTo reports whether isWanted accepts t or a type within t, such as that of a field or element. If isWanted
// returns isKnown = false for a type, leadsTo looks at the types within it.
func leadsTo(t reflect.Type, seen map[reflect.Type]bool, isWanted func(reflect.Type) (is, isKnown bool)) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if is, isKnown := isWanted(t); isKnown {
		return is
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return leadsTo(t.Elem(), seen, isWanted)
	case reflect.Map:
		return leadsTo(t.Key(), seen, isWanted) || leadsTo(t.Elem(), seen, isWanted)
	case reflect.Struct:
		for i := range t.NumField() {
			if leadsTo(t.Field(i).Type, seen, isWanted) {
				return true
			}
		}
	}
	return false
}

// isClosed reports whether gob's description of a type covers all types within its values, because the type contains no
// interface. Otherwise any value may describe further types.
func isClosed(t reflect.Type) bool {
	if before, ok := closed.Load(t); ok {
		return before.(bool)
	}
	is := !leadsTo(t, map[reflect.Type]bool{}, func(t reflect.Type) (is, isKnown bool) {
		return true, t.Kind() == reflect.Interface
	})
	closed.Store(t, is)
	return is
}

// FillMaps replaces a nil map in a decoded state by an empty map if the prototype, a new state, has a map there. Gob
// may decode an empty map as nil, but a state computation must be able to write to a map that its builder made.
func FillMaps(value, prototype any) {
	into, from := reflect.ValueOf(value), reflect.ValueOf(prototype)
	if into.IsValid() && from.IsValid() && into.Type() == from.Type() {
		fillMaps(into, from)
	}
}

func fillMaps(into, from reflect.Value) {
	switch into.Kind() {
	case reflect.Pointer:
		if !into.IsNil() && !from.IsNil() {
			fillMaps(into.Elem(), from.Elem())
		}
	case reflect.Struct:
		for i := range into.NumField() {
			fillMaps(into.Field(i), from.Field(i))
		}
	case reflect.Map:
		if into.IsNil() && !from.IsNil() && into.CanSet() {
			into.Set(reflect.MakeMap(into.Type()))
		}
	}
}

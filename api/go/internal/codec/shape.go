package codec

import (
	"fmt"
	"reflect"
	"strings"

	wa "wallarooapi"
	"wallarooapi/internal/known"
)

// maxShape is the largest number of fields of a type that Shape describes. A larger type has no shape.
const maxShape = 1000

// standard lists packages whose types have the same serialized form in all releases of Go.
var standard = map[string]bool{"time": true, "math/big": true, "net/netip": true, "net/url": true}

// Shape describes the type of a state for the topology, so that the runtime can compare it with the states of an older
// program in a checkpoint. It maps the paths of fields to their types. SPECIFICATION.md, section 1, defines the form.
// The result is nil if code of the program serializes the type.
func Shape(t reflect.Type) map[string]string {
	if t == nil || wa.Serialize != nil {
		return nil
	}
	if form, ok := known.FormOf(pointedTo(t)); ok {
		return form.Shape
	}
	if t.Implements(messageType) { // field numbers describe old bytes
		return map[string]string{"": "protobuf"}
	}
	return shapeOf(t, codingTypes, func(field reflect.StructField) string { return field.Name })
}

// JSONShape describes a type that encoding/json writes, in the same form as Shape.
func JSONShape(t reflect.Type) map[string]string {
	return shapeOf(t, jsonTypes, func(field reflect.StructField) string {
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			return ""
		case name == "":
			return field.Name
		}
		return name
	})
}

// shapeOf describes a type for Shape and JSONShape. The fields of shaper explain the parameters.
func shapeOf(t reflect.Type, opaque []reflect.Type, name func(reflect.StructField) string) map[string]string {
	s := shaper{opaque, name, map[string]string{}, map[reflect.Type]bool{}}
	if text := s.text(t, ""); text != "struct" {
		s.fields[""] = text
	}
	if len(s.fields) > maxShape {
		return nil
	}
	return s.fields
}

// shaper collects the description of one type for Shape.
type shaper struct {
	opaque []reflect.Type                   // interfaces of types whose own methods write them
	name   func(reflect.StructField) string // serialized name of a field; empty if the field is left out
	fields map[string]string
	within map[reflect.Type]bool // types that contain the current type
}

// text returns the description of a type, and adds the fields of structs below path. A pointer is described as its
// target.
func (s *shaper) text(t reflect.Type, path string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, form := range s.opaque {
		if t.Implements(form) || reflect.PointerTo(t).Implements(form) {
			if standard[t.PkgPath()] {
				return t.String()
			}
			return t.String() + "?"
		}
	}
	switch t.Kind() {
	case reflect.Interface:
		return t.String() + "?"
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		if s.within[t] || len(s.fields) > maxShape {
			return "struct"
		}
		s.within[t] = true
		defer delete(s.within, t)
		return s.parts(t, path)
	}
	return t.Kind().String()
}

// parts returns the description of a slice, array, map or struct.
func (s *shaper) parts(t reflect.Type, path string) string {
	text := ""
	switch t.Kind() {
	case reflect.Slice:
		text = "[]" + s.text(t.Elem(), path+"[]")
	case reflect.Array:
		text = fmt.Sprintf("[%d]%s", t.Len(), s.text(t.Elem(), path+"[]"))
	case reflect.Map:
		text = fmt.Sprintf("map[%s]%s", s.text(t.Key(), path+"[key]"), s.text(t.Elem(), path+"[]"))
	default:
		for i := range t.NumField() {
			field := t.Field(i)
			if name := s.name(field); name != "" && field.IsExported() {
				at := strings.TrimPrefix(path+"."+name, ".")
				s.fields[at] = s.text(field.Type, at)
			}
		}
		return "struct"
	}
	if known := strings.ReplaceAll(text, "?", ""); known != text {
		return known + "?"
	}
	return text
}

package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

var (
	jsonWritingTypes = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
	jsonReadingTypes = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
	jsonTypes        = slices.Concat(jsonWritingTypes, jsonReadingTypes)
	jsonMethods      = [][]string{{"MarshalJSON", "UnmarshalJSON"}, {"MarshalText", "UnmarshalText"}}

	// Values of these types contain no data to serialize.
	emptyTypes = []reflect.Type{reflect.TypeFor[sync.Mutex](), reflect.TypeFor[sync.RWMutex](), reflect.TypeFor[sync.Once]()}
)

const ownCodec = ", or register a Codec with Encode and Decode of your own"

// CheckJSON checks a type for encoding/json. unreadable says why written values cannot be read back. incomplete names a
// part that encoding/json silently leaves out.
func CheckJSON(t reflect.Type) (unreadable, incomplete error) {
	c := jsonCheck{seen: map[reflect.Type]bool{}}
	c.visit(t, part{root: t})
	if c.unreadable != nil {
		unreadable = c.unreadable
	}
	if c.incomplete != nil {
		incomplete = c.incomplete
	}
	return unreadable, incomplete
}

type jsonCheck struct {
	seen                   map[reflect.Type]bool
	unreadable, incomplete *Error // the first error of each kind
}

func (c *jsonCheck) refuse(at part, fix, reason string, values ...any) {
	if c.unreadable == nil {
		c.unreadable = &Error{Type: at.root.String(), Reason: fmt.Sprintf(reason, values...), Fix: fix + ownCodec}
	}
}

func (c *jsonCheck) visit(t reflect.Type, at part) {
	if c.seen[t] || slices.Contains(emptyTypes, t) {
		return
	}
	c.seen[t] = true
	leaveOut := "leave it out with the tag `json:\"-\"`"
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			c.refuse(at, "leave encoding/gob to write the type and call gob.Register with a value of each type that the interface holds",
				"%s is of type %s; encoding/json does not read an interface with methods", at, t)
		}
		return
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		c.refuse(at, leaveOut, "%s is of type %s, which JSON has not", at, t)
		return
	case reflect.Pointer:
		c.visit(t.Elem(), at)
		return
	}
	writes, reads := methodOf(t, jsonWritingTypes), methodOf(t, jsonReadingTypes)
	switch {
	case writes < reads:
		c.refuse(at, "give it "+jsonMethods[writes][1], "%s has %s and no %s, so it cannot be read", t, jsonMethods[writes][0], jsonMethods[writes][1])
		return
	case reads < writes:
		c.refuse(at, "give it "+jsonMethods[reads][0], "%s has %s and no %s, so it is not written as it is read", t, jsonMethods[reads][1], jsonMethods[reads][0])
		return
	case writes < len(jsonWritingTypes):
		if err := checkPromoted(t, jsonMethods[writes], "json"); err != nil {
			c.refuse(at, "give it "+strings.Join(jsonMethods[writes], " and ")+" of its own", "%s", err)
		}
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		c.visit(t.Elem(), at.item())
	case reflect.Map:
		c.key(t.Key(), at)
		c.visit(t.Elem(), at.item())
	case reflect.Struct:
		c.fields(t, at)
	}
}

// key checks the key type of a map: a string, an integer, or a type that implements both MarshalText and
// UnmarshalText.
func (c *jsonCheck) key(t reflect.Type, at part) {
	text := methodOf(t, jsonWritingTypes[1:]) == 0
	switch {
	case text != (methodOf(t, jsonReadingTypes[1:]) == 0):
		c.refuse(at, "give the key both", "%s has keys of type %s, which has one of MarshalText and UnmarshalText", at, t)
	case t.Kind() == reflect.String || t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr:
	case !t.Implements(jsonWritingTypes[1]):
		c.refuse(at, "take texts or integers as keys", "%s has keys of type %s, which JSON has not", at, t)
	}
}

func (c *jsonCheck) fields(t reflect.Type, at part) {
	names := map[string]string{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if field.Name == "_" || tag == "-" || slices.Contains(emptyTypes, field.Type) {
			continue
		}
		found := at.field(field.Name)
		isEmbedded := field.Anonymous && pointedTo(field.Type).Kind() == reflect.Struct
		if !field.IsExported() {
			switch {
			case !isEmbedded:
				if c.incomplete == nil {
					c.incomplete = &Error{Type: at.root.String(), Reason: found.String() + " is not exported, so JSON leaves it out", Fix: "export it" + ownCodec}
				}
				continue
			case field.Type.Kind() == reflect.Pointer:
				c.refuse(found, "embed it without the pointer", "%s is a pointer to a type that is not exported; encoding/json does not set it", found)
				continue
			}
		}
		if name, _, _ := strings.Cut(tag, ","); !isEmbedded || name != "" {
			if name == "" {
				name = field.Name
			}
			if names[name] != "" {
				c.refuse(found, "give one of them another tag", "%s and field %s are both %q in JSON, which leaves out both", found, names[name], name)
			}
			names[name] = field.Name
		}
		c.visit(field.Type, found)
	}
}

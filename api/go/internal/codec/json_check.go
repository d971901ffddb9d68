package codec

import (
	"cmp"
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

// CheckJSON checks whether encoding/json can serialize a type. The error unreadable gives the reason why written values
// cannot be read back, and incomplete names a field that encoding/json silently leaves out. Both are nil for a suitable
// type.
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

// jsonCheck is one run of CheckJSON through the types within a type.
type jsonCheck struct {
	seen                   map[reflect.Type]bool
	unreadable, incomplete *Error // the first error of each kind
}

// refuse records that values of a type cannot be read back.
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
		c.fields(t, at, map[string]part{})
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

// leavesOut records a field that JSON leaves out.
func (c *jsonCheck) leavesOut(at part, fix, reason string, values ...any) {
	if c.incomplete == nil {
		c.incomplete = &Error{Type: at.root.String(), Reason: fmt.Sprintf(reason, values...), Fix: fix + ownCodec}
	}
}

// fields checks the fields of a struct. names contains the members of the JSON object so far: an embedded struct adds
// its members to those of the struct around it.
func (c *jsonCheck) fields(t reflect.Type, at part, names map[string]part) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if field.Name == "_" || tag == "-" || slices.Contains(emptyTypes, field.Type) {
			continue
		}
		found, inner, isPointer := at.field(field.Name), pointedTo(field.Type), field.Type.Kind() == reflect.Pointer
		name, _, _ := strings.Cut(tag, ",")
		isEmbedded := field.Anonymous && inner.Kind() == reflect.Struct
		switch {
		case !field.IsExported() && !isEmbedded:
			c.leavesOut(at, "export it", "%s is not exported, so JSON leaves it out", found)
		case !field.IsExported() && isPointer:
			c.refuse(found, "embed it without the pointer", "%s is a pointer to a type that is not exported; encoding/json does not set it", found)
		case !isEmbedded || name != "":
			name = cmp.Or(name, field.Name)
			c.name(found, name, names)
			c.visit(field.Type, found)
		case !isPointer || !c.seen[inner]:
			c.seen[inner] = true
			c.fields(inner, found, names)
		}
	}
}

// name records the name of a field in JSON, and reports two fields with one name. JSON leaves out the one that is
// embedded more deeply, or both if they are equally deep.
func (c *jsonCheck) name(found part, name string, names map[string]part) {
	const remedy = "give one of them another tag"
	other, taken := names[name]
	names[name] = found
	switch {
	case !taken:
	case strings.Count(other.path, ".") == strings.Count(found.path, "."):
		c.refuse(found, remedy, "%s and field %s are both %q in JSON, which leaves out both", found, other.path, name)
	default:
		c.leavesOut(found, remedy, "%s and field %s are both %q in JSON, which leaves out the inner one", found, other.path, name)
	}
}

// Package topology has the Go types of the topology document. It writes the document, and checks its names, addresses
// and framings. SPECIFICATION.md, section 1, is the contract.
package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Member is one key of an Object with its value: a string, an int, a uint64, an Object or an Array.
type Member struct {
	Key   string
	Value any
}

// Object is a JSON object with its keys in order.
type Object []Member

// Array is a JSON array.
type Array []any

// Of returns an object with pairs of key and value.
func Of(pairs ...any) Object { return Object{}.With(pairs...) }

// With returns the object with more pairs of key and value.
func (o Object) With(pairs ...any) Object {
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, Member{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// WithSome returns the object with one more member, unless the value is the zero value.
func WithSome[T comparable](object Object, key string, value T) Object {
	var nothing T
	if value == nothing {
		return object
	}
	return append(object, Member{key, value})
}

// ArrayOf returns an array with the result of tree for each item.
func ArrayOf[T, V any](items []T, tree func(T) V) Array {
	array := make(Array, len(items))
	for i, item := range items {
		array[i] = tree(item)
	}
	return array
}

// Texts returns an array of strings.
func Texts(items []string) Array {
	return ArrayOf(items, func(item string) string { return item })
}

// TextsByName returns an object of strings, sorted by key.
func TextsByName(items map[string]string) Object {
	object := Object{}
	for _, name := range slices.Sorted(maps.Keys(items)) {
		object = append(object, Member{name, items[name]})
	}
	return object
}

// Canonical returns a document as JSON text in canonical form, with a newline at the end. All SDKs write equal
// documents as equal bytes, so that hashes can be compared.
func Canonical(document any) []byte {
	return append(appendValue(nil, document, "\n"), '\n')
}

// appendValue writes a value in canonical form. newline is a line feed and the value's indentation.
func appendValue(out []byte, value any, newline string) []byte {
	switch v := value.(type) {
	case string:
		return AppendString(out, v)
	case int:
		return strconv.AppendInt(out, int64(v), 10)
	case bool:
		return strconv.AppendBool(out, v)
	case uint64:
		return strconv.AppendUint(out, v, 10)
	case Object:
		return appendItems(out, "{}", len(v), newline, func(out []byte, i int, inner string) []byte {
			return appendValue(append(AppendString(out, v[i].Key), ": "...), v[i].Value, inner)
		})
	case Array:
		return appendItems(out, "[]", len(v), newline, func(out []byte, i int, inner string) []byte {
			return appendValue(out, v[i], inner)
		})
	}
	panic(fmt.Sprintf("a topology document has no values of type %T", value))
}

// appendItems writes the items of an object or array, one per line. brackets contains the opening and the closing
// bracket.
func appendItems(out []byte, brackets string, count int, newline string, item func(out []byte, i int, inner string) []byte) []byte {
	if count == 0 {
		return append(out, brackets...)
	}
	out = append(out, brackets[0])
	inner := newline + "  "
	for i := range count {
		if i > 0 {
			out = append(out, ',')
		}
		out = item(append(out, inner...), i, inner)
	}
	return append(append(out, newline...), brackets[1])
}

// AppendString writes a JSON string in which only quotes, backslashes and control characters below U+0020 are escaped.
// encoding/json cannot be used, because it also escapes U+2028 and U+2029.
func AppendString(out []byte, text string) []byte {
	const short = "btn\x00fr"
	out = append(out, '"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= '\b' && c <= '\r' && c != '\v':
			out = append(out, '\\', short[c-'\b'])
		case c < 0x20:
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

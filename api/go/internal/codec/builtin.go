package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Plain is the encoding of values in built-in codecs, as stored in the header of a frame.
const Plain = 0

// oneNaN holds the bits that all languages write for NaN.
const oneNaN = 0x7ff8 << 48

// Builtin is a codec whose bytes are the same in every language. Its methods may be called concurrently.
type Builtin struct {
	Name   string
	append func(out []byte, value any) ([]byte, error)
	decode func(data []byte) (any, error)
	holds  func(t reflect.Type) bool // whether values of a type can be written and read back
}

var builtins = []Builtin{
	{"bytes", appendBytes, decodeBytes, func(t reflect.Type) bool { return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 }},
	{"string", appendString, boxed(DecodeString), func(t reflect.Type) bool { return t.Kind() == reflect.String }},
	{"int64", appendInt64, boxed(DecodeInt64), isInteger},
	{"float64", appendFloat64, boxed(DecodeFloat64), func(t reflect.Type) bool { return t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32 }},
	{"json", appendJSON, decodeJSON, func(reflect.Type) bool { return true }},
}

// BuiltinOf returns the codec with a name. For a protobuf message, the program must link the generated package.
func BuiltinOf(name string) (Builtin, bool) {
	if message, named := strings.CutPrefix(name, messagePrefix); named {
		return messageCodec(name, message)
	}
	for _, each := range builtins {
		if each.Name == name {
			return each, true
		}
	}
	return Builtin{}, false
}

// Expected returns the texts of an error about a codec name that does not exist: the valid names, and the remedy.
func Expected(name string) (expected, fix string) {
	if message, named := strings.CutPrefix(name, messagePrefix); named && protoreflect.FullName(message).IsValid() {
		return "a message whose generated package is imported", "import what protoc generated for " + message
	}
	names := ""
	for _, each := range builtins {
		names += `"` + each.Name + `", `
	}
	expected = "one of " + names + `"` + messagePrefix + `FULL.NAME"`
	return expected, "pass " + expected
}

// Append appends the serialized value to out. After an error it returns out unchanged.
func (b Builtin) Append(out []byte, value any) ([]byte, error) { return b.append(out, value) }

// Encoding returns the encoding of the bytes that Append writes.
func (Builtin) Encoding() byte { return Plain }

// Reset does nothing, because values of built-in codecs are independent of each other.
func (Builtin) Reset() {}

// Decode reads a value in this codec. encoding is the encoding in the header of the frame, and must be Plain.
func (b Builtin) Decode(encoding byte, data []byte) (any, error) {
	if encoding != Plain {
		return nil, fmt.Errorf("the value has encoding %d; those of a codec have %d", encoding, Plain)
	}
	return b.decode(data)
}

// Holds reports whether the codec can write and read back values of type t. If t is nil because the type is unknown,
// the result is true.
func (b Builtin) Holds(t reflect.Type) bool {
	return t == nil || t.Kind() == reflect.Interface || b.holds(t)
}

// As returns a copy of the codec whose Decode converts its results to t, a type that the codec supports. With nil,
// Decode does not convert results.
func (b Builtin) As(t reflect.Type) Builtin {
	if t == nil || t.Kind() == reflect.Interface {
		return b
	}
	decode := b.decode
	b.decode = func(data []byte) (any, error) {
		value, err := decode(data)
		if err != nil || value == nil || reflect.TypeOf(value) == t {
			return value, err
		}
		return convert(value, t)
	}
	if b.Name == "json" {
		b.decode = func(data []byte) (any, error) { return decodeJSONInto(data, t) }
	}
	return b
}

// convert converts a decoded value to another type that the codec supports.
func convert(value any, t reflect.Type) (any, error) {
	from, into := reflect.ValueOf(value), reflect.New(t).Elem()
	switch number := value.(type) {
	case int64:
		if into.CanInt() && into.OverflowInt(number) || into.CanUint() && (number < 0 || into.OverflowUint(uint64(number))) {
			return nil, fmt.Errorf("%d does not fit into %s", number, t)
		}
	case float64:
		if into.OverflowFloat(number) {
			return nil, fmt.Errorf("%g does not fit into %s", number, t)
		}
	}
	return from.Convert(t).Interface(), nil
}

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

func appendBytes(out []byte, value any) ([]byte, error) {
	if bytes, ok := value.([]byte); ok {
		return append(out, bytes...), nil
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return append(out, v.Bytes()...), nil
	}
	return out, otherType(value, "[]byte")
}

func decodeBytes(data []byte) (any, error) { return append([]byte{}, data...), nil }

func appendString(out []byte, value any) ([]byte, error) {
	text, ok := value.(string)
	if !ok {
		v := reflect.Indirect(reflect.ValueOf(value))
		if v.Kind() != reflect.String {
			return out, otherType(value, "string")
		}
		text = v.String()
	}
	if !utf8.ValidString(text) {
		return out, errors.New("the text is not UTF-8")
	}
	return append(out, text...), nil
}

// boxed returns a decoder that calls the function decode, and returns the result as any.
func boxed[T any](decode func(data []byte) (T, error)) func(data []byte) (any, error) {
	return func(data []byte) (any, error) { return decode(data) }
}

// DecodeString reads UTF-8.
func DecodeString(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("the text is not UTF-8")
	}
	return string(data), nil
}

func appendInt64(out []byte, value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	switch {
	case v.CanInt():
		return binary.BigEndian.AppendUint64(out, uint64(v.Int())), nil
	case v.CanUint() && v.Uint() > math.MaxInt64:
		return out, fmt.Errorf("%d is not between -2**63 and 2**63-1", v.Uint())
	case v.CanUint():
		return binary.BigEndian.AppendUint64(out, v.Uint()), nil
	}
	return out, otherType(value, "an integer")
}

// DecodeInt64 reads 8 bytes, big-endian.
func DecodeInt64(data []byte) (int64, error) {
	number, err := eightBytes(data)
	return int64(number), err
}

func appendFloat64(out []byte, value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	if !v.CanFloat() {
		return out, otherType(value, "float64")
	}
	return AppendFloat64(out, v.Float()), nil
}

// AppendFloat64 writes 8 bytes, big-endian. All NaN get the same bytes.
func AppendFloat64(out []byte, number float64) []byte {
	if math.IsNaN(number) {
		return binary.BigEndian.AppendUint64(out, oneNaN)
	}
	return binary.BigEndian.AppendUint64(out, math.Float64bits(number))
}

// DecodeFloat64 reads 8 bytes, big-endian.
func DecodeFloat64(data []byte) (float64, error) {
	number, err := eightBytes(data)
	return math.Float64frombits(number), err
}

func eightBytes(data []byte) (uint64, error) {
	if len(data) != 8 {
		return 0, fmt.Errorf("%d bytes; a number has 8", len(data))
	}
	return binary.BigEndian.Uint64(data), nil
}

func otherType(value any, expected string) error {
	return fmt.Errorf("the message is %T; expected %s", value, expected)
}

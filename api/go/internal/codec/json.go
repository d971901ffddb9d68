package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"wallarooapi/internal/topology"
)

// appendJSON writes a value in the codec "json", in the same form as every language: no spaces, sorted object keys, as
// few escapes as possible, and floats in the format of ECMAScript.
func appendJSON(out []byte, value any) ([]byte, error) {
	result, err := appendTree(out, value)
	if err != nil {
		return out, err
	}
	return result, nil
}

func appendTree(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case string:
		return appendText(out, v)
	case int:
		return strconv.AppendInt(out, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case uint64:
		return strconv.AppendUint(out, v, 10), nil
	case float64:
		return appendFloat(out, v)
	case json.Number:
		return appendNumber(out, v)
	case *big.Int:
		if v == nil {
			return append(out, "null"...), nil
		}
		return v.Append(out, 10), nil
	case []any:
		return appendArray(out, v)
	case map[string]any:
		return appendObject(out, v)
	}
	return appendOther(out, value)
}

// appendOther writes a value of any other type, e.g. a struct of the program, with encoding/json.
func appendOther(out []byte, value any) ([]byte, error) {
	text, err := MarshalJSON(value)
	if wrong := (*json.UnsupportedTypeError)(nil); errors.As(err, &wrong) {
		if unreadable, _ := CheckJSON(reflect.TypeOf(value)); unreadable != nil {
			err = fmt.Errorf("%w; the tag `json:\"-\"` leaves out a field", unreadable)
		}
	}
	if err != nil {
		return out, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return out, err
	}
	return appendTree(out, tree)
}

func appendArray(out []byte, items []any) (_ []byte, err error) {
	out = append(out, '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendTree(out, item); err != nil {
			return out, err
		}
	}
	return append(out, ']'), nil
}

func appendObject(out []byte, members map[string]any) (_ []byte, err error) {
	out = append(out, '{')
	// For UTF-8, the order of bytes is the order of code points.
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendText(out, name); err != nil {
			return out, err
		}
		if out, err = appendTree(append(out, ':'), members[name]); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

func appendText(out []byte, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return out, errors.New("a text is not UTF-8")
	}
	return topology.AppendString(out, text), nil
}

func appendFloat(out []byte, number float64) ([]byte, error) {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return out, fmt.Errorf("%g is not JSON", number)
	}
	size := math.Abs(number)
	switch {
	case size == 0:
		return append(out, '0'), nil
	case size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(out, number, 'f', -1, 64), nil
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(number, 'e', -1, 64), "e")
	// Go writes at least two digits of an exponent.
	return fmt.Appendf(out, "%se%c%s", mantissa, exponent[0], strings.TrimPrefix(exponent[1:], "0")), nil
}

// appendNumber writes a number that is given as a text.
func appendNumber(out []byte, text json.Number) ([]byte, error) {
	value, err := number(string(text))
	if err != nil {
		return out, err
	}
	return appendTree(out, value)
}

// decodeJSON reads a value as nil, bool, string, int64, *big.Int (if int64 is too small), float64, []any or
// map[string]any.
func decodeJSON(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the text is not UTF-8")
	}
	if HasLoneSurrogate(data) {
		return nil, errLoneSurrogate
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, notJSON(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data follows the JSON value")
	}
	return withNumbers(tree)
}

var errLoneSurrogate = errors.New("a text has a lone surrogate")

// HasLoneSurrogate reports whether a JSON text has an escape sequence for half a character (a lone surrogate).
// encoding/json would replace it with another character.
func HasLoneSurrogate(data []byte) bool {
	isHigh := false // whether the previous escape is a high surrogate
	for {
		at := bytes.IndexByte(data, '\\')
		if at < 0 || len(data) < at+2 {
			return isHigh
		}
		unit := uint64(0)
		if len(data) >= at+6 && data[at+1] == 'u' {
			unit, _ = strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
		}
		isLow := unit>>10 == 0xDC00>>10
		if isLow != (isHigh && at == 0) || isHigh && at > 0 {
			return true
		}
		isHigh = unit>>10 == 0xD800>>10
		if unit > 0 {
			at += 4
		}
		data = data[at+2:]
	}
}

// notJSON returns the error for a text that is not JSON, or is cut.
func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON value is cut")
	}
	return err
}

// withNumbers replaces each json.Number in a decoded value by an int64, a *big.Int or a float64.
func withNumbers(tree any) (_ any, err error) {
	switch v := tree.(type) {
	case json.Number:
		return number(string(v))
	case []any:
		for i := range v {
			if v[i], err = withNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = withNumbers(v[name]); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}

// number reads a JSON number as int64, *big.Int or float64.
func number(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		return strconv.ParseFloat(text, 64)
	}
	if small, err := strconv.ParseInt(text, 10, 64); err == nil {
		return small, nil
	}
	if large, ok := new(big.Int).SetString(text, 10); ok {
		return large, nil
	}
	return nil, fmt.Errorf("%q is not a number of JSON", text)
}

// decodeJSONInto reads a value of type t with encoding/json. For null it returns nil.
func decodeJSONInto(data []byte, t reflect.Type) (any, error) {
	switch {
	case !utf8.Valid(data):
		return nil, errors.New("the text is not UTF-8")
	case HasLoneSurrogate(data):
		return nil, errLoneSurrogate
	case string(data) == "null":
		return nil, nil
	}
	into := reflect.New(t)
	if err := UnmarshalJSON(data, into.Interface()); err != nil {
		return nil, notJSON(err)
	}
	return into.Elem().Interface(), nil
}

// replacement is the escape that json.Marshal writes in place of a byte that is not UTF-8. It writes the character
// U+FFFD itself as three bytes.
var replacement = []byte(`\ufffd`)

// MarshalJSON is json.Marshal, but refuses a text that is not UTF-8, which json.Marshal would silently change. It does
// not find such a text in an interface, or in a value that has methods for its JSON.
func MarshalJSON(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if !bytes.Contains(data, replacement) || !bytes.Contains(bytes.ReplaceAll(data, []byte(`\\`), nil), replacement) {
		return data, err
	}
	isOwn := leadsTo(reflect.TypeOf(value), map[reflect.Type]bool{}, func(t reflect.Type) (is, isKnown bool) {
		is = t.PkgPath() != "time" && (t.Kind() == reflect.Interface || methodOf(t, jsonWritingTypes) < len(jsonWritingTypes))
		return is, is || t.PkgPath() == "time"
	})
	if isOwn {
		return data, err
	}
	return nil, errors.New("a text is not UTF-8")
}

// UnmarshalJSON is json.Unmarshal, but a number in an interface becomes a json.Number if float64 cannot represent it,
// so that no digit is lost.
func UnmarshalJSON(data []byte, into any) error {
	if isClosed(reflect.TypeOf(into)) {
		return json.Unmarshal(data, into)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data follows the JSON value")
	}
	toFloats(reflect.ValueOf(into))
	return nil
}

// toFloats replaces each json.Number in an interface by a float64, if float64 can represent the number.
func toFloats(v reflect.Value) {
	if v.Kind() != reflect.Interface && v.IsValid() && v.Type().PkgPath() != "" && methodOf(v.Type(), jsonReadingTypes) < len(jsonReadingTypes) {
		return // the value's own method has read it
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.CanSet() {
			return
		}
		if text, ok := v.Interface().(json.Number); ok {
			if float, exact := asFloat(string(text)); exact {
				v.Set(reflect.ValueOf(float))
			}
			return
		}
		toFloats(v.Elem())
	case reflect.Pointer:
		toFloats(v.Elem())
	case reflect.Slice, reflect.Array:
		if !isClosed(v.Type()) {
			for i := range v.Len() {
				toFloats(v.Index(i))
			}
		}
	case reflect.Map:
		if isClosed(v.Type()) {
			return
		}
		for keys := v.MapRange(); keys.Next(); {
			item := addressable(keys.Value())
			toFloats(item)
			v.SetMapIndex(keys.Key(), item)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() || v.Type().Field(i).Anonymous {
				toFloats(v.Field(i))
			}
		}
	}
}

// asFloat returns a JSON number as float64. exact is false if an integer would change its value, or if the number is
// out of float64's range. A number with a fraction or an exponent may be rounded.
func asFloat(text string) (float float64, exact bool) {
	float, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, ".eE") {
		return float, err == nil
	}
	whole, _ := new(big.Float).SetFloat64(float).Int(nil)
	return float, whole.String() == text || text == "-0"
}

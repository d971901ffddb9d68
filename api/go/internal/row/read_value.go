package row

import (
	"encoding/base64"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// mostOnStack is the number of columns up to which readStruct needs no allocation.
const mostOnStack = 64

// special are the floats that are not numbers in JSON.
var special = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

// readStruct reads all columns and skips other members. It is fast if the members are in the order of the columns.
func readStruct(f *form, r *reader, into reflect.Value) error {
	var noted [mostOnStack]bool
	seen := noted[:]
	if len(f.columns) > len(seen) {
		seen = make([]bool, len(f.columns))
	}
	next, count := 0, 0
	err := r.members(f, func(name []byte) error {
		at, has := next, next < len(f.columns) && f.columns[next].name == string(name)
		if !has {
			at, has = f.byName[strings.ToLower(string(name))]
		}
		if !has {
			_, err := r.skip()
			return err
		}
		each := &f.columns[at]
		if seen[at] {
			return &Error{each.name, "is there twice"}
		}
		seen[at] = true
		next = at + 1
		count++
		if err := each.read(each.form, r, each.of(into)); err != nil {
			return inside(each.name, err)
		}
		return nil
	})
	if err != nil || count == len(f.columns) {
		return err
	}
	for i, each := range f.columns {
		if !seen[i] {
			return &Error{each.name, "is missing"}
		}
	}
	return nil
}

// of returns the field of a struct value that belongs to the column.
func (c *column) of(value reflect.Value) reflect.Value {
	for _, i := range c.index {
		value = value.Field(i)
	}
	return value
}

func readText(f *form, r *reader, into reflect.Value) error {
	if r.peek() != '"' {
		return r.wants(f)
	}
	text, err := r.text()
	into.SetString(text)
	return err
}

func readBool(f *form, r *reader, into reflect.Value) error {
	switch {
	case r.word("true"):
		into.SetBool(true)
	case r.word("false"):
		into.SetBool(false)
	default:
		return r.wants(f)
	}
	return nil
}

func readInt(f *form, r *reader, into reflect.Value) error {
	from := r.at
	number, err := strconv.ParseInt(string(r.number()), 10, f.bits)
	if err != nil {
		r.at = from
		return r.wants(f)
	}
	into.SetInt(number)
	return nil
}

func readFloat(f *form, r *reader, into reflect.Value) error {
	from := r.at
	var number float64
	var err error
	if r.peek() == '"' {
		text, wrong := r.text()
		value, is := special[text]
		if number, err = value, wrong; !is {
			err = strconv.ErrSyntax
		}
	} else {
		number, err = strconv.ParseFloat(string(r.number()), f.bits)
	}
	if err != nil {
		r.at = from
		return r.wants(f)
	}
	into.SetFloat(number)
	return nil
}

func readDecimal(f *form, r *reader, into reflect.Value) error {
	number := r.number()
	if number == nil {
		return r.wants(f)
	}
	into.SetString(string(number))
	return nil
}

// textOf reads a text and converts it with read. If read fails, the error says that the text does not fit the column
// type.
func textOf[V any](f *form, r *reader, read func(text string) (V, error)) (value V, err error) {
	if r.peek() != '"' {
		return value, r.wants(f)
	}
	from := r.at
	text, err := r.text()
	if err != nil {
		return value, err
	}
	if value, err = read(text); err != nil {
		r.at = from
		err = r.wants(f)
	}
	return value, err
}

func readBinary(f *form, r *reader, into reflect.Value) error {
	data, err := textOf(f, r, base64.StdEncoding.DecodeString)
	if err == nil {
		into.SetBytes(data)
	}
	return err
}

func readTime(f *form, r *reader, into reflect.Value) error {
	at, err := textOf(f, r, parseTime)
	if err == nil {
		into.Set(reflect.ValueOf(at))
	}
	return err
}

func readDate(f *form, r *reader, into reflect.Value) error {
	day, err := textOf(f, r, func(text string) (time.Time, error) {
		if len(text) == len(time.DateOnly) {
			text += "T00:00:00Z"
		}
		day, err := parseTime(text)
		if err == nil && !isMidnight(day) {
			err = strconv.ErrRange
		}
		return day, err
	})
	if err == nil {
		into.Set(reflect.ValueOf(day))
	}
	return err
}

// parseTime parses a time with zone (RFC 3339), and converts it to UTC. Years outside 1 to 9999 are errors.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, err
	}
	at = at.UTC()
	if !hasYear(at) {
		err = strconv.ErrRange
	}
	return at, err
}

func isMidnight(at time.Time) bool { return at.Equal(at.Truncate(24 * time.Hour)) }

// hasYear reports whether a time is in the years that Spark supports.
func hasYear(at time.Time) bool { return at.Year() >= 1 && at.Year() <= 9999 }

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	return text != "" && len((&reader{data: []byte(text)}).number()) == len(text)
}

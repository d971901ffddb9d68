package row

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

const (
	mostKeyBytes    = 50_000 // the query ends if Spark's parser of JSON gets a longer key
	mostNumberBytes = 1000   // the same for a number
)

func writeStruct(f *form, out []byte, value reflect.Value) (_ []byte, err error) {
	for i := range f.columns {
		each := &f.columns[i]
		out = append(out, separator('{', i))
		out = append(topology.AppendString(out, each.name), ':')
		if out, err = each.write(each.form, out, each.of(value)); err != nil {
			return out, inside(each.name, err)
		}
	}
	return append(out, '}'), nil
}

// separator returns the bytes before an item: the opening bracket, or a comma.
func separator(opening byte, i int) byte {
	if i == 0 {
		return opening
	}
	return ','
}

func writePointer(f *form, out []byte, value reflect.Value) ([]byte, error) {
	if value.IsNil() {
		return append(out, "null"...), nil
	}
	return f.item.write(f.item, out, value.Elem())
}

func writeArray(f *form, out []byte, value reflect.Value) (_ []byte, err error) {
	if value.Len() == 0 {
		return append(out, "[]"...), nil
	}
	for i := range value.Len() {
		if out, err = f.item.write(f.item, append(out, separator('[', i)), value.Index(i)); err != nil {
			return out, inside(fmt.Sprintf("[%d]", i), err)
		}
	}
	return append(out, ']'), nil
}

func writeMap(f *form, out []byte, value reflect.Value) (_ []byte, err error) {
	if value.Len() == 0 {
		return append(out, "{}"...), nil
	}
	keys := value.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for i, key := range keys {
		if size := len(key.String()); size > mostKeyBytes {
			return out, &Error{"", fmt.Sprintf("has a key of %d bytes; a key of a MAP has at most %d", size, mostKeyBytes)}
		}
		if out, err = appendText(append(out, separator('{', i)), key.String()); err == nil {
			out, err = f.item.write(f.item, append(out, ':'), value.MapIndex(key))
		}
		if err != nil {
			return out, inside("["+shortQuoted(key.String())+"]", err)
		}
	}
	return append(out, '}'), nil
}

func appendText(out []byte, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return out, &Error{"", "is not UTF-8: " + shortQuoted(text)}
	}
	return topology.AppendString(out, text), nil
}

// shortQuoted returns a text in quotes, cut to mostShown characters, for an error.
func shortQuoted(text string) string { return diagnostic.Cut(strconv.Quote(text), mostShown) }

func writeText(_ *form, out []byte, value reflect.Value) ([]byte, error) {
	return appendText(out, value.String())
}

func writeBool(_ *form, out []byte, value reflect.Value) ([]byte, error) {
	return strconv.AppendBool(out, value.Bool()), nil
}

func writeInt(_ *form, out []byte, value reflect.Value) ([]byte, error) {
	return strconv.AppendInt(out, value.Int(), 10), nil
}

// writeFloat writes the shortest number that is read back as the same float. This includes -0.0.
func writeFloat(f *form, out []byte, value reflect.Value) ([]byte, error) {
	switch number := value.Float(); {
	case math.IsNaN(number):
		return append(out, `"NaN"`...), nil
	case math.IsInf(number, 1):
		return append(out, `"Infinity"`...), nil
	case math.IsInf(number, -1):
		return append(out, `"-Infinity"`...), nil
	case number == 0 && math.Signbit(number):
		return append(out, "-0.0"...), nil
	default:
		return strconv.AppendFloat(out, number, 'g', -1, f.bits), nil
	}
}

func writeDecimal(f *form, out []byte, value reflect.Value) ([]byte, error) {
	number := value.String()
	if !isNumber(number) {
		return out, &Error{"", "is " + shortQuoted(number) + "; expected a number for " + f.sql}
	}
	short, isExact := fits(number, f.digits, f.scale)
	if !isExact {
		return out, &Error{"", "is " + diagnostic.Cut(number, mostShown) + "; expected a number that " + f.sql + " holds without rounding"}
	}
	if short == "0" || len(number) > mostNumberBytes {
		number = short
	}
	return append(out, number...), nil
}

// fits reports whether DECIMAL(digits, scale) can represent a JSON number without rounding. If so, it also returns the
// number without needless digits: "0", or an integer with an exponent.
func fits(number string, digits, scale int) (short string, is bool) {
	positive, isNegative := strings.CutPrefix(number, "-")
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(positive), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	significant := strings.TrimRight(strings.TrimLeft(whole+fraction, "0"), "0")
	if significant == "" {
		return "0", true
	}
	last := len(strings.TrimRight(whole+fraction, "0")) - len(whole) // digits after the point, without final zeros
	if hasExponent {
		shift, err := strconv.Atoi(exponent)
		if err != nil || shift > 1<<20 || shift < -(1<<20) {
			return "", false
		}
		last -= shift
	}
	short = significant + "e" + strconv.Itoa(-last)
	if isNegative {
		short = "-" + short
	}
	return short, last <= scale && len(significant)-last <= digits-scale
}

func writeBinary(_ *form, out []byte, value reflect.Value) ([]byte, error) {
	out = base64.StdEncoding.AppendEncode(append(out, '"'), value.Bytes())
	return append(out, '"'), nil
}

// writeTime writes a time in UTC, truncated to microseconds.
func writeTime(f *form, out []byte, value reflect.Value) ([]byte, error) {
	at := value.Interface().(time.Time).UTC()
	if !hasYear(at) {
		return out, &Error{"", "is " + at.Format(time.RFC3339) + "; expected a " + f.sql + " in the years 1 to 9999"}
	}
	return at.AppendFormat(out, `"2006-01-02T15:04:05.999999Z"`), nil
}

func writeDate(f *form, out []byte, value reflect.Value) ([]byte, error) {
	day := value.Interface().(time.Time)
	if !isMidnight(day) {
		return out, &Error{"", "is " + day.Format(time.RFC3339Nano) + "; expected a " + f.sql + ": midnight, UTC"}
	}
	if !hasYear(day.UTC()) {
		return writeTime(f, out, value)
	}
	return day.UTC().AppendFormat(out, `"2006-01-02"`), nil
}

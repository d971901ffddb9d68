package row

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
)

const mostShown = 40 // characters

// Decode reads a row from JSON into a zero value of the struct. Its errors name the column.
func (r *Rows) Decode(data []byte, into reflect.Value) error {
	if !utf8.Valid(data) {
		return &Error{"", "is not UTF-8"}
	}
	in := &reader{data: data}
	in.space()
	if err := r.form.read(r.form, in, into); err != nil {
		return err
	}
	if in.space(); in.at < len(data) {
		return &Error{"", "is followed by " + in.shown()}
	}
	return nil
}

// reader is a position in a JSON text, which is UTF-8.
type reader struct {
	data []byte
	at   int
}

func (r *reader) space() {
	for r.at < len(r.data) && (r.data[r.at] == ' ' || r.data[r.at] == '\n' || r.data[r.at] == '\t' || r.data[r.at] == '\r') {
		r.at++
	}
}

// peek returns the next byte without reading it, or 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

// takes reports whether c is the next byte apart from spaces. If so, it skips c and the spaces around it.
func (r *reader) takes(c byte) bool {
	r.space()
	if r.peek() != c {
		return false
	}
	r.at++
	r.space()
	return true
}

// word reports whether the next bytes are a word such as null. If so, it skips the word.
func (r *reader) word(word string) bool {
	if !bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		return false
	}
	r.at += len(word)
	return true
}

// wants returns the error for a next value that does not fit the column type. The error shows this value.
func (r *reader) wants(f *form) error {
	if r.peek() == 'n' && r.word("null") {
		return &Error{"", "is null; only the type *" + f.goType.String() + " takes null"}
	}
	return &Error{"", "is " + r.shown() + "; expected " + diagnostic.Cut(f.sql, 2*mostShown)}
}

// shown skips the next value and returns it for an error, cut to mostShown characters. At the end of the data it
// returns the word "cut".
func (r *reader) shown() string {
	if r.at >= len(r.data) {
		return "cut"
	}
	from := r.at
	value, err := r.skip()
	if err != nil {
		value = r.data[from:]
	}
	return diagnostic.Cut(string(value), mostShown)
}

// text reads a string.
func (r *reader) text() (string, error) {
	quoted, isPlain, err := r.quoted()
	if err != nil || isPlain {
		return string(quoted), err
	}
	if codec.HasLoneSurrogate(quoted) {
		return "", &Error{"", "has a text with a lone surrogate"}
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return "", &Error{"", "has a text that is not JSON: " + diagnostic.Cut(string(quoted), mostShown)}
	}
	return text, nil
}

// quoted skips a JSON string. It returns the text without quotes if there are no escapes, or else the whole string.
func (r *reader) quoted() (text []byte, isPlain bool, err error) {
	if r.peek() != '"' {
		return nil, false, &Error{"", "is not JSON at " + r.shownRest()}
	}
	isPlain = true
	for at := r.at + 1; at < len(r.data); at++ {
		switch c := r.data[at]; {
		case c == '\\':
			isPlain = false
			at++
		case c == '"':
			text = r.data[r.at : at+1]
			r.at = at + 1
			if isPlain {
				text = text[1 : len(text)-1]
			}
			return text, isPlain, nil
		case c < ' ':
			return nil, false, &Error{"", "has a text with a control character"}
		}
	}
	return nil, false, &Error{"", "is cut in a text"}
}

// shownRest returns the start of the remaining text, for an error.
func (r *reader) shownRest() string {
	if r.at >= len(r.data) {
		return "its end"
	}
	return diagnostic.Cut(string(r.data[r.at:]), mostShown)
}

// number skips a JSON number and returns it. If there is none, it returns nil.
func (r *reader) number() []byte {
	from := r.at
	at := from
	digits := func() bool {
		start := at
		for at < len(r.data) && r.data[at] >= '0' && r.data[at] <= '9' {
			at++
		}
		return at > start
	}
	next := func(any string) bool {
		if at < len(r.data) && bytes.IndexByte([]byte(any), r.data[at]) >= 0 {
			at++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() || next(".") && !digits() {
		return nil
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return nil
		}
	}
	r.at = at
	return r.data[from:at]
}

// skip skips a value of any kind and returns its bytes.
func (r *reader) skip() ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(r.data[r.at:]))
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return nil, &Error{"", "is not JSON at " + r.shownRest()}
	}
	r.at += int(decoder.InputOffset())
	return value, nil
}

// inside adds a field or an index, e.g. "user" or "[0]", in front of the column's path in an error.
func inside(part string, err error) error {
	if wrong := (*Error)(nil); errors.As(err, &wrong) {
		return wrong.in(part)
	}
	return fmt.Errorf("%s: %w", part, err)
}

func readPointer(f *form, r *reader, into reflect.Value) error {
	if r.word("null") {
		return nil
	}
	into.Set(reflect.New(f.item.goType))
	return f.item.read(f.item, r, into.Elem())
}

func readArray(f *form, r *reader, into reflect.Value) error {
	if !r.takes('[') {
		return r.wants(f)
	}
	into.Set(reflect.MakeSlice(f.goType, 0, 0))
	if r.takes(']') {
		return nil
	}
	for i := 0; ; i++ {
		into.Grow(1)
		into.SetLen(i + 1)
		if err := f.item.read(f.item, r, into.Index(i)); err != nil {
			return inside(fmt.Sprintf("[%d]", i), err)
		}
		if r.takes(']') {
			return nil
		}
		if !r.takes(',') {
			return &Error{"", "is not JSON at " + r.shownRest()}
		}
	}
}

func readMap(f *form, r *reader, into reflect.Value) error {
	into.Set(reflect.MakeMap(f.goType))
	return r.members(f, func(name []byte) error {
		item := reflect.New(f.item.goType).Elem()
		if err := f.item.read(f.item, r, item); err != nil {
			return inside("["+shortQuoted(string(name))+"]", err)
		}
		into.SetMapIndex(reflect.ValueOf(string(name)).Convert(f.goType.Key()), item)
		return nil
	})
}

// members reads an object. For each member it calls the function take, which must read the member's value.
func (r *reader) members(f *form, take func(name []byte) error) error {
	if !r.takes('{') {
		return r.wants(f)
	}
	if r.takes('}') {
		return nil
	}
	for {
		name, isPlain, err := r.quoted()
		if err == nil && !isPlain {
			var text string
			text, err = (&reader{data: name}).text()
			name = []byte(text)
		}
		if err != nil {
			return err
		}
		if !r.takes(':') {
			return &Error{"", "is not JSON at " + r.shownRest()}
		}
		if err := take(name); err != nil {
			return err
		}
		if r.takes('}') {
			return nil
		}
		if !r.takes(',') {
			return &Error{"", "is not JSON at " + r.shownRest()}
		}
	}
}

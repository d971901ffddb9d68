package stream

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unicode/utf8"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/known"
)

// Codec turns messages of one type into bytes and back. Both functions may be called from several goroutines; Decode may keep data
// but not change it.
//
// A codec serves at the edges, where its methods are handed to sources and sinks, and with Register between processes and for states.
// Without one, values of the basic types are written as they are, others with encoding/gob, which needs exported fields (C504).
// A value comes back without what gob does not tell apart: an empty slice as nil, an empty map that is no nil map, two pointers to one
// value as two values, a time.Time with the offset of its zone and without the name of its location. One that leads back to itself is refused (C504).
// Messages of generated protobuf types need none: between programs, a Component has the codec "protobuf:FULL.NAME".
// An error of Encode or Decode makes the message a dead letter.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(data []byte) (T, error)
}

// functions is a codec of two functions.
type functions[T any] struct {
	encode func(T) ([]byte, error)
	decode func([]byte) (T, error)
}

func (f functions[T]) Encode(value T) ([]byte, error) { return f.encode(value) }
func (f functions[T]) Decode(data []byte) (T, error)  { return f.decode(data) }

// formed is a codec whose bytes follow from the type: its shape describes them.
type formed[T any] struct {
	functions[T]
	shape map[string]string
	check func(reflect.Type) (unreadable, incomplete error) // nil: what the type has is no error
}

// The built-in codecs, whose bytes are the same in all languages: UTF-8, the bytes themselves, and 8 bytes big-endian.
var (
	Text  Codec[string] = functions[string]{encodeText, decodeText}
	Bytes Codec[[]byte] = functions[[]byte]{
		func(value []byte) ([]byte, error) { return value, nil },
		func(data []byte) ([]byte, error) { return data, nil },
	}
	Int64 Codec[int64] = functions[int64]{
		func(value int64) ([]byte, error) { return bytesOf(uint64(value)), nil },
		func(data []byte) (int64, error) {
			if len(data) != 8 {
				return 0, errLength(data)
			}
			return int64(binary.BigEndian.Uint64(data)), nil
		},
	}
	Float64 Codec[float64] = functions[float64]{
		func(value float64) ([]byte, error) { return bytesOf(math.Float64bits(value)), nil },
		func(data []byte) (float64, error) {
			if len(data) != 8 {
				return 0, errLength(data)
			}
			return math.Float64frombits(binary.BigEndian.Uint64(data)), nil
		},
	}
)

func errLength(data []byte) error { return fmt.Errorf("%d bytes; expected 8", len(data)) }

func encodeText(value string) ([]byte, error) {
	if !utf8.ValidString(value) {
		return nil, errors.New("the text is not UTF-8")
	}
	return []byte(value), nil
}

func decodeText(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("the bytes are not UTF-8")
	}
	return string(data), nil
}

// JSON returns a codec with encoding/json. Members that T does not have are left out; bytes after the value are an error. A number in an
// `any` comes as float64, one that float64 cannot hold as json.Number. Register refuses a T that encoding/json cannot read back (C504):
// interfaces with methods, func, chan, one of MarshalJSON and UnmarshalJSON; of states also fields that are not exported. What an `any`
// holds comes back as JSON has it, an int as float64 and a struct as a map: gob.Register in place of this codec keeps its type.
func JSON[T any]() Codec[T] {
	return formed[T]{functions[T]{
		func(value T) ([]byte, error) { return json.Marshal(&value) },
		func(data []byte) (value T, err error) {
			err = codec.UnmarshalJSON(data, &value)
			return value, err
		},
	}, codec.JSONShape(reflect.TypeFor[T]()), codec.CheckJSON}
}

// Gob returns a codec with encoding/gob. Each value stands for itself, with the description of its type. What encoding/gob leaves out comes
// back as it does there: fields that are not exported as zero values, a pointer to a zero value as nil, -0.0 as 0.0, an empty slice as nil.
func Gob[T any]() Codec[T] {
	return formed[T]{functions[T]{
		func(value T) ([]byte, error) {
			var out bytes.Buffer
			err := gob.NewEncoder(&out).Encode(&value)
			return out.Bytes(), err
		},
		func(data []byte) (value T, err error) {
			err = gob.NewDecoder(bytes.NewReader(data)).Decode(&value)
			return value, err
		},
	}, codec.GobShape(reflect.TypeFor[T]()), codec.CheckGob}
}

// Register makes a codec the form of a type's values, and of values of pointers to it, where they move between processes or
// are states. Call it before the application is declared, e.g. in an init function; T is no interface or pointer. The last call
// for a type counts. States that were written with another form must stay readable by Decode.
func Register[T any](codec Codec[T]) {
	made, _ := codec.(formed[T])
	var unreadable, incomplete error
	if made.check != nil {
		unreadable, incomplete = made.check(reflect.TypeFor[T]())
	}
	known.RegisterForm(reflect.TypeFor[T](), known.Form{
		Shape: made.shape, Unreadable: unreadable, Incomplete: incomplete,
		Encode: func(value any) ([]byte, error) {
			if pointer, ok := value.(*T); ok {
				return codec.Encode(*pointer)
			}
			return codec.Encode(value.(T))
		},
		Decode: func(data []byte, behind bool) (any, error) {
			value, err := codec.Decode(data)
			if behind {
				return &value, err
			}
			return value, err
		},
	})
}

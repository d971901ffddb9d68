package stream

import (
	"errors"
	"reflect"
	"unicode/utf8"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/known"
)

// Codec turns values of one type, messages or states, into bytes and back. Several goroutines may call both methods at
// once. Decode may keep data but must not change it. If Encode or Decode returns an error, the message becomes a dead
// letter.
//
// Pass the methods of a codec to sources and sinks. Pass the codec to Register for states and for messages between
// processes. Without a registered codec, basic types are written as they are, and other types with encoding/gob, which
// needs exported fields (C504). Gob does not preserve everything. An empty slice becomes nil, and a nil map may become
// an empty map. Two pointers to the same value become pointers to two values. A time.Time keeps the offset of its zone
// but loses the name of its location and the reading of the monotonic clock. A value with a pointer cycle is refused
// (C504). Generated protobuf types need no codec. A component of another program uses the codec "protobuf:FULL.NAME"
// for them.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(data []byte) (T, error)
}

// functions is a codec that consists of two functions.
type functions[T any] struct {
	encode func(T) ([]byte, error)
	decode func([]byte) (T, error)
}

func (f functions[T]) Encode(value T) ([]byte, error) { return f.encode(value) }
func (f functions[T]) Decode(data []byte) (T, error)  { return f.decode(data) }

// formed is a codec that knows the fields of its type. shape has the type of each field. A run compares it with the
// shape in an earlier version of the program. unreadable is the reason why values cannot be read back, incomplete the
// reason why the bytes lack some data; both are nil if all is well.
type formed[T any] struct {
	functions[T]
	shape                  map[string]string
	unreadable, incomplete error
}

// The built-in codecs write the same bytes in all languages: UTF-8 for Text, the bytes themselves for Bytes, and 8
// bytes big-endian for Int64 and Float64.
var (
	Text  Codec[string] = functions[string]{encodeText, codec.DecodeString}
	Bytes Codec[[]byte] = functions[[]byte]{
		func(value []byte) ([]byte, error) { return value, nil },
		func(data []byte) ([]byte, error) { return data, nil },
	}
	Int64 Codec[int64] = functions[int64]{
		func(value int64) ([]byte, error) { return bytesOf(uint64(value)), nil }, codec.DecodeInt64,
	}
	Float64 Codec[float64] = functions[float64]{
		func(value float64) ([]byte, error) { return codec.AppendFloat64(nil, value), nil }, codec.DecodeFloat64,
	}
)

func encodeText(value string) ([]byte, error) {
	if !utf8.ValidString(value) {
		return nil, errors.New("the text is not UTF-8")
	}
	return []byte(value), nil
}

// JSON returns a codec that uses encoding/json. It ignores object members that T does not have. Bytes after the value
// are an error. A number in an `any` is decoded as float64, or as json.Number if float64 cannot represent it. Other
// values in an `any` are decoded as JSON types, too: a struct becomes a map. To keep their types, use gob.Register in
// place of this codec. Register refuses a T that encoding/json cannot read back (C504): interfaces with methods, func,
// chan, or a type with only one of MarshalJSON and UnmarshalJSON. For states it also refuses fields that are not
// exported, and fields of an embedded struct that another field hides. A text that is not UTF-8 is refused.
func JSON[T any]() Codec[T] {
	unreadable, incomplete := codec.CheckJSON(reflect.TypeFor[T]())
	return formed[T]{functions[T]{
		func(value T) ([]byte, error) { return codec.MarshalJSON(&value) },
		func(data []byte) (value T, err error) {
			err = codec.UnmarshalJSON(data, &value)
			return value, err
		},
	}, codec.JSONShape(reflect.TypeFor[T]()), unreadable, incomplete}
}

// Register sets the codec for values of type T and of type *T that are states or move between processes. Call Register
// before the declaration of the application, e.g. in an init function. T must not be an interface or a pointer. If
// several calls register a codec for T, the last one counts. If you replace the codec of a state, the new Decode must
// also read states that the old codec has written.
func Register[T any](codec Codec[T]) {
	made, _ := codec.(formed[T])
	known.RegisterForm(reflect.TypeFor[T](), known.Form{
		Shape: made.shape, Unreadable: made.unreadable, Incomplete: made.incomplete,
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

package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// The tags are the first byte of a value in native format, and state the type of the bytes after them. They are stored
// in state logs, so their meaning never changes.
const (
	tagString = iota + 1
	tagStringPointer
	tagBytes
	tagFalse
	tagTrue
	tagInt
	tagInt8
	tagInt16
	tagInt32
	tagInt64
	tagUint
	tagUint8
	tagUint16
	tagUint32
	tagUint64
	tagFloat32
	tagFloat64
)

const (
	tagGobFirst        = iota + 64 // name of the type, then the type's description and the value
	tagGobFirstPointer             // the same for a pointer to the value
	tagGobNext                     // number of the type in this frame, then the value
	tagGobNextPointer
	tagForm        // name of the type, then the bytes of its form
	tagFormPointer // the same for a pointer to the value
	tagGobWhole    // name of the type, its description, then the value; values with the same description share a gob stream
	tagGobWholePointer
	tagMessage // full name of a protobuf message, then its bytes
	_          // no longer used
	tagMarks   // numbers of the places whose values gob loses (see zero.go), then the value with another tag
)

func (e *Encoder) appendNative(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return append(append(out, tagString), v...), nil
	case *string:
		if v == nil {
			return out, &Error{Type: "*string", Reason: "the pointer is nil"}
		}
		return append(append(out, tagStringPointer), *v...), nil
	case []byte:
		return append(append(out, tagBytes), v...), nil
	case bool:
		if v {
			return append(out, tagTrue), nil
		}
		return append(out, tagFalse), nil
	case float32:
		return binary.LittleEndian.AppendUint32(append(out, tagFloat32), math.Float32bits(v)), nil
	case float64:
		return binary.LittleEndian.AppendUint64(append(out, tagFloat64), math.Float64bits(v)), nil
	}
	if tag, number, ok := integer(value); ok {
		return binary.AppendUvarint(append(out, tag), number), nil
	}
	if result, done, err := appendForm(out, value); done {
		return result, err
	}
	if result, done, err := appendNativeMessage(out, value); done {
		return result, err
	}
	result, value, err := appendMarks(out, value)
	if err == nil {
		result, err = e.gob.append(result, value)
	}
	if err != nil {
		return out, err
	}
	return result, nil
}

// integer returns the tag and the bits of a value of a basic integer type. For other values, ok is false. The tags are
// in the same order as the kinds of package reflect.
func integer(value any) (tag byte, bits uint64, ok bool) {
	v := reflect.ValueOf(value)
	kind := v.Kind()
	if kind < reflect.Int || kind > reflect.Uint64 || v.Type().PkgPath() != "" {
		return 0, 0, false
	}
	if tag = tagInt + byte(kind-reflect.Int); v.CanInt() {
		return tag, zigzag(v.Int()), true
	}
	return tag, v.Uint(), true
}

// zigzag encodes numbers near zero in few bits, independent of their sign.
func zigzag(number int64) uint64 { return uint64(number)<<1 ^ uint64(number>>63) }

func unzigzag(bits uint64) int64 { return int64(bits>>1) ^ -int64(bits&1) }

func (d *Decoder) decodeNative(data []byte) (any, error) {
	if len(data) == 0 {
		return nil, &Error{Type: "a serialized value", Reason: "it has no bytes"}
	}
	tag, rest := data[0], data[1:]
	switch {
	case tag == tagString:
		return string(rest), nil
	case tag == tagStringPointer:
		text := string(rest)
		return &text, nil
	case tag == tagBytes:
		return append([]byte{}, rest...), nil
	case tag == tagFalse || tag == tagTrue:
		return tag == tagTrue, nil
	case tag == tagFloat32 && len(rest) == 4:
		return math.Float32frombits(binary.LittleEndian.Uint32(rest)), nil
	case tag == tagFloat64 && len(rest) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(rest)), nil
	case tag >= tagInt && tag <= tagUint64:
		if bits, size := binary.Uvarint(rest); size == len(rest) && size > 0 {
			return wholeNumbers[tag-tagInt](bits), nil
		}
	case tag >= tagGobFirst && tag <= tagGobNextPointer, tag == tagGobWhole, tag == tagGobWholePointer:
		return d.gob.decode(tag, rest)
	case tag == tagForm || tag == tagFormPointer:
		return decodeForm(tag, rest)
	case tag == tagMarks:
		return d.decodeMarked(rest)
	case tag == tagMessage:
		return decodeNativeMessage(rest)
	}
	return nil, &Error{Type: "a serialized value", Reason: fmt.Sprintf("tag %d with %d bytes was not written by this SDK", tag, len(rest))}
}

// wholeNumbers has, for each tag from tagInt on, a function that converts bits to a number of the tag's type.
var wholeNumbers = [...]func(bits uint64) any{
	func(bits uint64) any { return int(unzigzag(bits)) },
	func(bits uint64) any { return int8(unzigzag(bits)) },
	func(bits uint64) any { return int16(unzigzag(bits)) },
	func(bits uint64) any { return int32(unzigzag(bits)) },
	func(bits uint64) any { return unzigzag(bits) },
	func(bits uint64) any { return uint(bits) },
	func(bits uint64) any { return uint8(bits) },
	func(bits uint64) any { return uint16(bits) },
	func(bits uint64) any { return uint32(bits) },
	func(bits uint64) any { return bits },
}

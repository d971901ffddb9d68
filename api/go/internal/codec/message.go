package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// messagePrefix is the prefix of a protobuf codec's name, before the full name of the message.
const messagePrefix = "protobuf:"

// messageCodec returns the built-in codec of a protobuf message, given by its full name. Values are pointers to the
// generated type. ok is false if the program does not link this type.
func messageCodec(name, message string) (codec Builtin, ok bool) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(message))
	if err != nil {
		return Builtin{}, false
	}
	t := reflect.TypeOf(kind.Zero().Interface())
	encode := func(out []byte, value any) ([]byte, error) {
		if reflect.TypeOf(value) != t {
			return out, otherType(value, t.String())
		}
		return AppendMessage(out, value.(proto.Message))
	}
	decode := func(data []byte) (any, error) {
		read := kind.New().Interface()
		if err := proto.Unmarshal(data, read); err != nil {
			return nil, err
		}
		return read, nil
	}
	return Builtin{name, encode, decode, func(other reflect.Type) bool { return other == t }}, true
}

// AppendMessage appends a protobuf message in the built-in codec of its type. After an error it returns out unchanged.
func AppendMessage(out []byte, message proto.Message) ([]byte, error) {
	if !message.ProtoReflect().IsValid() {
		return out, errors.New("the message is a nil pointer")
	}
	data, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(out, message)
	if err != nil {
		return out, err
	}
	return data, nil
}

var messageType = reflect.TypeFor[proto.Message]()

// appendNativeMessage writes a protobuf message in native format, with the name of its type. For other values, done is
// false.
func appendNativeMessage(out []byte, value any) (result []byte, done bool, err error) {
	message, ok := value.(proto.Message)
	if !ok {
		return out, false, nil
	}
	name := message.ProtoReflect().Descriptor().FullName()
	start := binary.AppendUvarint(append(out, tagMessage), uint64(len(name)))
	result, err = AppendMessage(append(start, name...), message)
	if err != nil {
		return out, true, &Error{Type: fmt.Sprintf("%T", value), Reason: err.Error()}
	}
	return result, true, nil
}

// decodeNativeMessage reads a protobuf message that appendNativeMessage wrote, after its tag: type name, then content.
func decodeNativeMessage(data []byte) (any, error) {
	name, rest, err := cutName(data)
	if err != nil {
		return nil, err
	}
	codec, ok := messageCodec(messagePrefix+name, name)
	if !ok {
		return nil, &Error{Type: name, Reason: "this program has no generated code for the message"}
	}
	value, err := codec.decode(rest)
	if err != nil {
		return nil, &Error{Type: name, Reason: err.Error()}
	}
	return value, nil
}

// cutName reads a name that follows its length at the start of data, and returns it with the remaining bytes.
func cutName(data []byte) (name string, rest []byte, err error) {
	size, rest, err := uvarint(data)
	if err != nil {
		return "", nil, err
	}
	text, rest, err := cut(rest, size)
	return string(text), rest, err
}

package codec

import (
	"errors"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// messagePrefix stands before the full name of a protobuf message in the name of its codec.
const messagePrefix = "protobuf:"

// messageCodec returns the codec of a protobuf message, whose values are pointers as the generated functions take them.
func messageCodec(name, message string) (Builtin, bool) {
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

// AppendMessage appends the bytes of a protobuf message in the built-in codec of its type. After an error out is as it was.
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

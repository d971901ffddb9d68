package codec_test

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"wallarooapi/internal/codec"
)

// messages has a message of the type of each codec in the test vectors, by the name of the codec.
var messages = map[string]proto.Message{
	"protobuf:google.protobuf.StringValue": &wrapperspb.StringValue{},
	"protobuf:google.protobuf.Int64Value":  &wrapperspb.Int64Value{},
	"protobuf:google.protobuf.Struct":      &structpb.Struct{},
}

// isSame reports whether two values are equal. Protobuf messages are compared by proto.Equal.
func isSame(a, b any) bool {
	if message, ok := a.(proto.Message); ok {
		return reflect.TypeOf(a) == reflect.TypeOf(b) && proto.Equal(message, b.(proto.Message))
	}
	return reflect.DeepEqual(a, b)
}

func TestMessagesAreOfOneType(t *testing.T) {
	form := builtin(t, "protobuf:google.protobuf.StringValue")
	for other, want := range map[reflect.Type]bool{
		nil:                              true,
		reflect.TypeFor[any]():           true,
		reflect.TypeFor[proto.Message](): true,
		reflect.TypeFor[*wrapperspb.StringValue](): true,
		reflect.TypeFor[wrapperspb.StringValue]():  false,
		reflect.TypeFor[*structpb.Struct]():        false,
		reflect.TypeFor[string]():                  false,
	} {
		if form.Holds(other) != want {
			t.Errorf("whether it holds %v is not %v", other, want)
		}
	}
	data, err := form.Append(nil, wrapperspb.String("hope"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{nil, reflect.TypeFor[proto.Message](), reflect.TypeFor[*wrapperspb.StringValue]()} {
		read, err := form.As(of).Decode(codec.Plain, data)
		if message, ok := read.(*wrapperspb.StringValue); err != nil || !ok || message.GetValue() != "hope" {
			t.Errorf("as %v it is read as %v (%T), %v", of, read, read, err)
		}
	}
}

func TestNamesOfNoCodec(t *testing.T) {
	all := `one of "bytes", "string", "int64", "float64", "json", "protobuf:FULL.NAME"`
	for name, want := range map[string][2]string{
		"xml":                                {all, "pass " + all},
		"protobuf:":                          {all, "pass " + all},
		"protobuf:shop.v1.Order":             {"a message whose generated package is imported", "import what protoc generated for shop.v1.Order"},
		"protobuf:google.protobuf.Kinds":     {"a message whose generated package is imported", "import what protoc generated for google.protobuf.Kinds"},
		"protobuf:google.protobuf.NullValue": {"a message whose generated package is imported", "import what protoc generated for google.protobuf.NullValue"},
	} {
		if _, found := codec.BuiltinOf(name); found {
			t.Errorf("%s is a codec", name)
		}
		if expected, fix := codec.Expected(name); expected != want[0] || fix != want[1] {
			t.Errorf("%s: expected %s, %s", name, expected, fix)
		}
	}
}

func TestMessagesOfProtobufMoveWithoutACodec(t *testing.T) {
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		want, err := structpb.NewStruct(map[string]any{"n": random.Int32(), "text": strconv.Itoa(random.IntN(9)), "b": random.IntN(2) > 0})
		if err != nil {
			t.Fatal(err)
		}
		data, err := encoder.Append([]byte("kept"), want)
		if err != nil {
			t.Fatal(err)
		}
		read, err := decoder.Decode(encoder.Encoding(), data[4:])
		if err != nil || !isSame(read, want) {
			t.Fatalf("%v is read as %v, %v", want, read, err)
		}
	}
	if err := codec.CheckType(reflect.TypeFor[*structpb.Struct]()); err != nil {
		t.Error(err)
	}
}

func TestMessagesOfProtobufThatCannotBeRead(t *testing.T) {
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	data, err := encoder.Append(nil, wrapperspb.String("hope"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := encoder.Append([]byte("kept"), (*wrapperspb.StringValue)(nil)); err == nil || string(out) != "kept" {
		t.Errorf("a nil pointer gives %q, %v", out, err)
	}
	unknown := append([]byte{data[0], 3}, "a.B"...)
	for name, damaged := range map[string][]byte{"a type that is not there": unknown, "cut": data[:5], "bytes": append(data[:len(data):len(data)], 0xFF)} {
		if read, err := decoder.Decode(encoder.Encoding(), damaged); err == nil {
			t.Errorf("%s is read as %v", name, read)
		}
	}
}

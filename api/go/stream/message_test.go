package stream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
	"wallarooapi/stream"
)

const (
	structs = "protobuf:google.protobuf.Struct"
	texts   = "protobuf:google.protobuf.StringValue"
)

func itemOf(_ context.Context, purchase *structpb.Struct) (*wrapperspb.StringValue, error) {
	name, has := purchase.GetFields()["item"]
	if !has {
		return nil, errors.New("nothing was bought")
	}
	return wrapperspb.String(name.GetStringValue()), nil
}

func wire(t *testing.T, message proto.Message) string {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMessagesOfProtobufCross(t *testing.T) {
	library := stream.NewLibrary()
	stream.OfferMap(library, "item", itemOf, structs, texts)
	x, err := hosted(t, library.ToJson(), crossing("item", structs, texts, pb.NodeKind_NODE_KIND_COMPUTATION)...)
	if err != nil {
		t.Fatal(err)
	}
	tea, err := structpb.NewStruct(map[string]any{"item": "tea", "amount": 2})
	if err != nil {
		t.Fatal(err)
	}
	nothing, err := structpb.NewStruct(map[string]any{"items": nil, "amount": 0})
	if err != nil {
		t.Fatal(err)
	}
	outputs := play(t, x, numbered(t, 7, []string{"", "", ""}, wire(t, tea), "\xff", wire(t, nothing)))
	if got := read(t, outputs, 8); !slices.Equal(got, []string{wire(t, wrapperspb.String("tea"))}) {
		t.Errorf("messages are %q", got)
	}
	letters := read(t, outputs, frame.DeadLetterPort)
	if len(letters) != 2 || !strings.HasPrefix(letters[0], `C505 0/sources/0: it is not in codec "`+structs+`"; `) ||
		letters[1] != "C501 item: nothing was bought" {
		t.Errorf("dead letters are %q", letters)
	}
	for _, output := range outputs {
		var f frame.Frame
		if output.Port != frame.DeadLetterPort {
			continue
		}
		if _, err := f.Read(output.Frame); err != nil {
			t.Fatal(err)
		}
		letter := &pb.DeadLetter{}
		if err := proto.Unmarshal(f.Values[f.Lengths.At(0):], letter); err != nil {
			t.Fatal(err)
		}
		if string(letter.GetInput()) != wire(t, nothing) || letter.GetEncoding() != 0 {
			t.Errorf("what the function refused is kept as %q, encoding %d", letter.GetInput(), letter.GetEncoding())
		}
	}
}

func TestMistakesWithMessagesOfProtobuf(t *testing.T) {
	library := stream.NewLibrary()
	stream.OfferMap(library, "item", itemOf, "protobuf:shop.v1.Purchase", structs)
	stream.OfferMap(library, "double", double, texts, "int64")
	app := stream.New("Wrong")
	purchases := stream.From(app, "purchases", stream.TCPSource("127.0.0.1:7010", stream.U32BE, func(data []byte) (*structpb.Struct, error) {
		read := &structpb.Struct{}
		return read, proto.Unmarshal(data, read)
	}))
	component := wa.OtherProgram("shop", "shop.py").Computation("item", "protobuf:shop.v1.Purchase", texts)
	stream.Through[string](purchases, component).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	result, _ := declaration.Lookup(library.ToJson())
	text := diagnostic.Error(result.Found).Error() + app.Check().Error()
	for _, want := range []string{
		`T207 OfferMap: parameter input is "protobuf:shop.v1.Purchase"; expected a message whose generated package is imported`,
		"fix: import what protoc generated for shop.v1.Purchase",
		`T262 step "item": output is *wrapperspb.StringValue, which codec "` + structs + `" cannot write`,
		`T262 step "double": input is int, which codec "` + texts + `" cannot write`,
		`T207 Through: parameter input is "protobuf:shop.v1.Purchase"; expected a message whose generated package is imported`,
		`T262 step "item": output is string, which codec "` + texts + `" cannot write`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\ndoes not have\n%s", text, want)
		}
	}
}

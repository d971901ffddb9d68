package stream_test

import (
	"context"
	"errors"
	"fmt"

	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
)

// money needs a codec, because encoding/gob cannot write fields that are not exported.
type money struct{ cents int64 }

type moneyCodec struct{}

func (moneyCodec) Encode(m money) ([]byte, error) { return stream.Int64.Encode(m.cents) }

func (moneyCodec) Decode(data []byte) (money, error) {
	cents, err := stream.Int64.Decode(data)
	if cents < 0 {
		err = errors.Join(err, errors.New("a debt"))
	}
	return money{cents}, err
}

var _ stream.Codec[money] = moneyCodec{}

func init() { stream.Register(moneyCodec{}) }

// The built-in codecs write the same bytes in all languages.
func ExampleCodec() {
	text, _ := stream.Text.Encode("é")
	bytes, _ := stream.Bytes.Encode([]byte{1, 2})
	integer, _ := stream.Int64.Encode(-2)
	float, _ := stream.Float64.Encode(0.5)
	fmt.Printf("%x\n%x\n%x\n%x\n", text, bytes, integer, float)
	_, err := stream.Int64.Decode(text)
	fmt.Println(err)
	// Output:
	// c3a9
	// 0102
	// fffffffffffffffe
	// 3fe0000000000000
	// 2 bytes; a number has 8
}

func ExampleJSON() {
	codec := stream.JSON[order]()
	data, _ := codec.Encode(order{"AAPL", 3})
	fmt.Println(string(data))
	_, err := codec.Decode([]byte("{"))
	fmt.Println(err)
	// Output:
	// {"Symbol":"AAPL","Amount":3}
	// unexpected end of JSON input
}

// Messages that go to a step with state, and states, need a registered codec if encoding/gob cannot write their types.
func ExampleRegister() {
	type price struct{ cents int64 }
	example.Show(paid(func(_ context.Context, data string) (price, error) { return price{int64(len(data))}, nil }), "sinks")
	example.Show(paid(func(_ context.Context, data string) (money, error) { return money{int64(len(data))}, nil }), "sinks", "port")
	app := stream.New("Bills")
	stream.MapState(stream.Collect(stream.From(app, "bills", textSource)), "pay", func(context.Context, string, *price) (string, error) {
		return "", nil
	}).To(textSink)
	example.Show(app.ToJson(), "sinks")
	// Output:
	// C504 count: stream_test.price cannot be serialized; field cents of stream_test.price is not exported; fix: export its fields and leave out what has no bytes (chan, func, mutex), or give the type a Codec with stream.Register
	// 7002
	// C504 pay: *stream_test.price cannot be serialized; field cents of stream_test.price is not exported; fix: export its fields and leave out what has no bytes (chan, func, mutex), or give the type a Codec with stream.Register
}

// paid returns the topology of an application that counts amounts of a type.
func paid[T any](amount func(context.Context, string) (T, error)) string {
	app := stream.New("Bills")
	amounts := stream.Collect(stream.Map(stream.From(app, "bills", textSource), "amount", amount))
	count := func(_ context.Context, _ T, state *total) (string, error) {
		state.Count++
		return fmt.Sprintln(state.Count), nil
	}
	stream.MapState(amounts, "count", count).To(textSink)
	return app.ToJson()
}

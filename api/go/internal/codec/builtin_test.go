package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/testdata/vector"
)

type codecVectors struct {
	Cases []struct {
		Codec string
		Value json.RawMessage
		Hex   string
	}
	JSONNumbers   []struct{ Bits, Text string } `json:"json_numbers"`
	Kept, Invalid []struct{ Codec, Hex string }
}

// message returns the Go value that a test vector describes as JSON.
func message(t *testing.T, name string, value json.RawMessage) any {
	t.Helper()
	var text string
	_ = json.Unmarshal(value, &text) // of the kinds that are no text nothing is used
	switch name {
	case "bytes":
		return unhex(t, text)
	case "string":
		return text
	case "int64":
		number, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return number
	case "float64":
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	if made, ok := messages[name]; ok {
		read := made.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal(value, read); err != nil {
			t.Fatal(err)
		}
		return read
	}
	tree, err := builtin(t, "json").Decode(codec.Plain, value)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func builtin(t *testing.T, name string) codec.Builtin {
	t.Helper()
	found, ok := codec.BuiltinOf(name)
	if !ok {
		t.Fatalf("there is no codec %s", name)
	}
	return found
}

func TestBuiltinCodecsAgreeWithTheVectors(t *testing.T) {
	var vectors codecVectors
	vector.Read(t, "codecs.json", &vectors)
	for _, c := range vectors.Cases {
		form, value := builtin(t, c.Codec), message(t, c.Codec, c.Value)
		data, err := form.Append([]byte("before"), value)
		if err != nil || hex.EncodeToString(data[6:]) != c.Hex || string(data[:6]) != "before" {
			t.Errorf("%s %s: %x, %v; want %s", c.Codec, c.Value, data, err, c.Hex)
		}
		read, err := form.Decode(codec.Plain, unhex(t, c.Hex))
		number, _ := read.(float64)
		if err != nil || !isSame(read, value) && !math.IsNaN(number) {
			t.Errorf("%s %s: read as %v, %v", c.Codec, c.Hex, read, err)
		}
	}
	for _, c := range vectors.Kept {
		read, err := builtin(t, c.Codec).Decode(codec.Plain, unhex(t, c.Hex))
		if data, wrong := builtin(t, c.Codec).Append(nil, read); err != nil || wrong != nil || hex.EncodeToString(data) != c.Hex {
			t.Errorf("%s %s: comes back as %x; %v, %v", c.Codec, c.Hex, data, err, wrong)
		}
	}
	for _, c := range vectors.Invalid {
		if read, err := builtin(t, c.Codec).Decode(codec.Plain, unhex(t, c.Hex)); err == nil {
			t.Errorf("%s %s: read as %v; want an error", c.Codec, c.Hex, read)
		}
	}
	if len(vectors.Cases) < 30 || len(vectors.Invalid) < 10 || len(vectors.Kept) == 0 {
		t.Errorf("%d, %d and %d vectors", len(vectors.Cases), len(vectors.Kept), len(vectors.Invalid))
	}
}

func TestNumbersOfJSONHaveOneForm(t *testing.T) {
	var vectors codecVectors
	vector.Read(t, "codecs.json", &vectors)
	for _, c := range vectors.JSONNumbers {
		value := math.Float64frombits(binary.BigEndian.Uint64(unhex(t, c.Bits)))
		for _, form := range []any{value, []any{value}, struct{ A float64 }{value}} {
			data, err := builtin(t, "json").Append(nil, form)
			if text := strings.Trim(string(data), `[]{}"A:`); err != nil || text != c.Text {
				t.Errorf("%v: %s, %v; want %s", value, text, err, c.Text)
			}
		}
		read, err := builtin(t, "json").Decode(codec.Plain, []byte(c.Text))
		if number, wrong := strconv.ParseFloat(fmt.Sprint(read), 64); err != nil || wrong != nil || number != value {
			t.Errorf("%s: read as %v, %v", c.Text, read, err)
		}
	}
	if len(vectors.JSONNumbers) < 200 {
		t.Errorf("%d vectors", len(vectors.JSONNumbers))
	}
}

// FuzzJSON reads any text. If the codec accepts it, the value is written, read and written again without a change.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"b":1.0,"a":[1e21,-0.0,1e-7]}`, `"\u0041"`, `123456789012345678901234567890`, `[1E400]`, `-0`} {
		f.Add([]byte(seed))
	}
	form, _ := codec.BuiltinOf("json")
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := form.Decode(codec.Plain, data)
		if err != nil {
			return
		}
		first, err := form.Append(nil, value)
		if err != nil {
			t.Fatalf("%q was read and is not written: %v", data, err)
		}
		again, err := form.Decode(codec.Plain, first)
		if err != nil {
			t.Fatalf("%q is not read back: %v", first, err)
		}
		if second, err := form.Append(nil, again); err != nil || string(second) != string(first) {
			t.Fatalf("%q, then %q, %v", first, second, err)
		}
	})
}

func TestJSONNumbersStayWhatTheyAre(t *testing.T) {
	form := builtin(t, "json")
	large := new(big.Int).Lsh(big.NewInt(1), 80)
	for _, c := range []struct {
		value any
		text  string
	}{
		{1.5, "1.5"}, {-0.5, "-0.5"}, {1e21, "1e+21"}, {1e-5, "0.00001"}, {1e-7, "1e-7"}, {0.0001, "0.0001"},
		{int64(1), "1"}, {large, "1208925819614629174706176"},
	} {
		data, err := form.Append(nil, c.value)
		if err != nil || string(data) != c.text {
			t.Errorf("%v: %s, %v; want %s", c.value, data, err, c.text)
		}
		if read, err := form.Decode(codec.Plain, data); err != nil || !reflect.DeepEqual(read, c.value) {
			t.Errorf("%s: read as %v (%T), %v", data, read, read, err)
		}
	}
	if data, err := form.Append(nil, uint64(math.MaxUint64)); err != nil || string(data) != "18446744073709551615" {
		t.Errorf("%s, %v", data, err)
	}
}

func TestBuiltinCodecsRefuseOtherTypes(t *testing.T) {
	for _, c := range []struct {
		codec string
		value any
		text  string
	}{
		{"bytes", "a", "the message is string; expected []byte"},
		{"string", []byte("a"), "the message is []uint8; expected string"},
		{"string", nil, "the message is <nil>; expected string"},
		{"string", "\xff", "the text is not UTF-8"},
		{"int64", true, "the message is bool; expected an integer"},
		{"int64", uint64(1) << 63, "9223372036854775808 is not between -2**63 and 2**63-1"},
		{"float64", 1, "the message is int; expected float64"},
		{"json", math.NaN(), "NaN is not JSON"},
		{"json", []any{"a", "\xff"}, "a text is not UTF-8"},
		{"json", func() {}, "func() is of type func(), which JSON has not; the tag `json:\"-\"` leaves out a field"},
		{"json", &job{Parts: []part{{}}}, "field Parts[].Done of *codec_test.job is of type chan int, which JSON has not; the tag `json:\"-\"` leaves out a field"},
		{"protobuf:google.protobuf.Struct", wrapperspb.String("a"), "the message is *wrapperspb.StringValue; expected *structpb.Struct"},
		{"protobuf:google.protobuf.Struct", nil, "the message is <nil>; expected *structpb.Struct"},
		{"protobuf:google.protobuf.Struct", (*structpb.Struct)(nil), "the message is a nil pointer"},
	} {
		out, err := builtin(t, c.codec).Append([]byte("kept"), c.value)
		if err == nil || err.Error() != c.text || string(out) != "kept" {
			t.Errorf("%s %v: %q, %v; want %s", c.codec, c.value, out, err, c.text)
		}
	}
	if _, err := builtin(t, "int64").Decode(codec.Native, make([]byte, 8)); err == nil {
		t.Error("values in the worker's own form are read in a codec")
	}
}

type job struct {
	Skip  chan int `json:"-"`
	Parts []part
}

type part struct{ Done chan int }

type celsius float32

type order struct {
	Symbol string
	Amount int
}

func TestBuiltinCodecsReadValuesOfTheProgramsTypes(t *testing.T) {
	for _, value := range []any{
		int8(-3), uint16(7), celsius(1.5), "text", []byte("bytes"), order{"<AAPL>", 3}, &order{"MSFT", 4}, []order{{"A", 1}},
		map[string]int{"b": 1, "a": 2},
	} {
		written := 0
		for _, name := range []string{"bytes", "string", "int64", "float64", "json"} {
			form, of := builtin(t, name), reflect.TypeOf(value)
			data, err := form.Append(nil, value)
			if form.Holds(of) != (err == nil) {
				t.Errorf("%s: whether it holds %s is not whether it writes %v: %v", name, of, value, err)
				continue
			} else if err != nil {
				continue
			}
			written++
			if read, err := form.As(of).Decode(codec.Plain, data); err != nil || !reflect.DeepEqual(read, value) {
				t.Errorf("%s %s: read as %v (%T), %v", name, data, read, read, err)
			}
		}
		if written == 0 || written > 2 {
			t.Errorf("%T: %d codecs write it", value, written)
		}
	}
	data, err := builtin(t, "json").Append(nil, order{"<AAPL>", 3})
	if want := []byte(`{"Amount":3,"Symbol":"<AAPL>"}`); err != nil || !bytes.Equal(data, want) {
		t.Errorf("%s, %v", data, err)
	}
	for _, c := range []struct {
		codec, text string
		of          reflect.Type
	}{
		{"int64", "\x00\x00\x00\x00\x00\x00\x01\x00", reflect.TypeFor[int8]()},
		{"int64", "\xff\xff\xff\xff\xff\xff\xff\xff", reflect.TypeFor[uint64]()},
		{"float64", "\x7f\xe1\xcc\xf3\x85\xeb\xc8\xa0", reflect.TypeFor[float32]()},
		{"json", `{"Amount":"three"}`, reflect.TypeFor[order]()},
		{"json", "{} {}", reflect.TypeFor[order]()},
		{"json", "", reflect.TypeFor[order]()},
		{"json", "\"\xff\"", reflect.TypeFor[string]()},
	} {
		if read, err := builtin(t, c.codec).As(c.of).Decode(codec.Plain, []byte(c.text)); err == nil {
			t.Errorf("%s %q: read as %v; want an error", c.codec, c.text, read)
		}
	}
	if read, err := builtin(t, "json").As(reflect.TypeFor[order]()).Decode(codec.Plain, []byte("null")); read != nil || err != nil {
		t.Errorf("null is %v, %v", read, err)
	}
}

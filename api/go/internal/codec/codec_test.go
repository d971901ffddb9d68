package codec_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/known"
	"wallarooapi/internal/testdata/example"
)

type point struct{ X, Y int }

type nested struct {
	When   time.Time
	Points []point
	ByName map[string]*point
}

type hidden struct{ x int }

type mixed struct {
	Seen  int
	mutex sync.Mutex
}

func (m *mixed) lock() { m.mutex.Lock() }

var _ = (*mixed).lock

type jobs struct {
	Point  point
	ByName map[string]*struct{ Parts [2]struct{ Run func() } }
}

func init() {
	wa.RegisterType(point{})
	wa.RegisterType((*nested)(nil))
}

func TestNativeValuesComeBack(t *testing.T) {
	text := "text"
	all := []any{
		"", "Grüße", &text, []byte{}, []byte{1, 2}, true, false, 0, -1, math.MaxInt, int8(-8), int16(-16), int32(-32), int64(math.MinInt64),
		uint(1), uint8(8), uint16(16), uint32(32), uint64(math.MaxUint64), float32(1.5), math.Pi, math.Inf(1),
		point{1, 2}, &point{3, 4}, point{5, 6}, []string{"a", "b"}, map[string]uint64{"a": 1},
		&nested{time.Unix(1, 2).UTC(), []point{{7, 8}}, map[string]*point{"p": {9, 10}}}, &point{},
	}
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	for round := range 2 {
		encoder.Reset()
		decoder.Reset()
		for _, value := range all {
			bytes, err := encoder.Append([]byte("before"), value)
			if err != nil {
				t.Fatalf("%T: %v", value, err)
			}
			got, err := decoder.Decode(encoder.Encoding(), bytes[len("before"):])
			if err != nil || !reflect.DeepEqual(got, value) {
				t.Errorf("round %d: %#v came back as %#v, error %v", round, value, got, err)
			}
		}
	}
}

func TestWhatCannotBeSerializedIsNamed(t *testing.T) {
	encoder := codec.NewEncoder()
	for value, want := range map[any]string{
		&hidden{1}:          "field x of codec_test.hidden is not exported",
		&mixed{}:            "field mutex of codec_test.mixed is not exported",
		new(chan int):       "values of type chan int have no bytes",
		&job{}:              "field Skip of codec_test.job is a chan int, which has no bytes",
		&jobs{}:             "field ByName[].Parts[].Run of codec_test.jobs is a func(), which has no bytes",
		&[]part{}:           "field [].Done of []codec_test.part is a chan int, which has no bytes",
		(*string)(nil):      "the pointer is nil",
		(*point)(nil):       "nil pointer",
		struct{ A int8 }{1}: "wa.RegisterType makes it known",
		&[]int16{1}:         "wa.RegisterType makes it known",
	} {
		out, err := encoder.Append([]byte("kept"), value)
		named := (*codec.Error)(nil)
		if !errors.As(err, &named) || !strings.Contains(err.Error(), want) || string(out) != "kept" {
			t.Errorf("%T: error %v, bytes %q; want %q", value, err, out, want)
		}
	}
}

// twins returns values of two types with one name. The name of a type that a function declares lacks the function.
func twins() (first, second any) {
	type twin struct{ A int8 }
	first = twin{1}
	func() {
		type twin struct{ B string }
		second = twin{"b"}
	}()
	return first, second
}

// TestTypesOfOneNameAreReported: without the error, a value would be read back as one of the other type.
func TestTypesOfOneNameAreReported(t *testing.T) {
	first, second := twins()
	for _, hasForm := range []bool{false, true} {
		for _, value := range []any{first, second} {
			known.Register(reflect.TypeOf(value))
			if hasForm {
				known.RegisterForm(reflect.TypeOf(value), known.Form{
					Encode: func(any) ([]byte, error) { return []byte{1}, nil },
					Decode: func([]byte, bool) (any, error) { return value, nil },
				})
			}
		}
		_, err := codec.NewEncoder().Append(nil, first)
		const want = "another type of the program has the same name, wallarooapi/internal/codec_test.twin"
		if err == nil || err.Error() != want {
			t.Fatalf("error %v; want %q", err, want)
		}
		if got := codec.Remedy(err); got != "give one of the two types another name" {
			t.Error(got)
		}
		data, err := codec.NewEncoder().Append(nil, second)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := codec.NewDecoder().Decode(codec.Native, data); err != nil || got != second {
			t.Error(got, err)
		}
	}
}

func TestAFailureDoesNotSpoilTheValuesBehindIt(t *testing.T) {
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	for _, value := range []any{&point{1, 2}, (*point)(nil), &point{3, 4}, &hidden{}, &point{5, 6}} {
		bytes, err := encoder.Append(nil, value)
		if err != nil {
			continue
		}
		if got, err := decoder.Decode(codec.Native, bytes); err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%v came back as %v, error %v", value, got, err)
		}
	}
}

func TestDamagedValuesAreErrors(t *testing.T) {
	bytes, err := codec.NewEncoder().Append(nil, &point{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for end := range len(bytes) {
		if _, err := codec.NewDecoder().Decode(codec.Native, bytes[:end]); err == nil {
			t.Errorf("%d of %d bytes were read", end, len(bytes))
		}
	}
	for _, damaged := range []string{"\x00", "\xff", "\x06", "\x10\x01", "\x42\x00", "\x40\xff\xff", "\x40\x03abc"} {
		if _, err := codec.NewDecoder().Decode(codec.Native, []byte(damaged)); err == nil {
			t.Errorf("%q was read", damaged)
		}
	}
	if _, err := codec.NewDecoder().Decode(99, nil); err == nil {
		t.Error("encoding 99 was read")
	}
}

func TestOwnSerialization(t *testing.T) {
	defer example.SetSerialize(true)()
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	bytes, err := encoder.Append(nil, "word")
	if err != nil || encoder.Encoding() != codec.Custom || string(bytes) != "sword" {
		t.Fatalf("%q, %v", bytes, err)
	}
	if got, err := decoder.Decode(codec.Custom, bytes); err != nil || got != "word" {
		t.Errorf("came back as %v, %v", got, err)
	}
	if _, err := encoder.Append(nil, 1); err == nil || err.Error() != "Serialize returned nil" {
		t.Errorf("error is %v", err)
	}
	if _, err := decoder.Decode(codec.Custom, nil); err == nil || !strings.Contains(err.Error(), "Deserialize panicked: runtime error: index out of range") {
		t.Errorf("error is %v", err)
	}
	wa.Serialize = func(interface{}) []byte { panic("missed a case") }
	if _, err := codec.NewEncoder().Append(nil, 1); err == nil || err.Error() != "Serialize panicked: missed a case" {
		t.Errorf("error is %v", err)
	}
}

// TestAnotherProcessReadsTheTypes writes a value in another process, in which gob numbers the types in another order.
func TestAnotherProcessReadsTheTypes(t *testing.T) {
	if path := os.Getenv("WRITE_POINT"); path != "" {
		encoder := codec.NewEncoder()
		if _, err := encoder.Append(nil, &nested{}); err != nil {
			t.Fatal(err)
		}
		bytes, err := encoder.Append(nil, &point{3, 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	path := t.TempDir() + "/point"
	child := exec.Command(os.Args[0], "-test.run", t.Name())
	child.Env = append(os.Environ(), "WRITE_POINT="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := codec.NewDecoder().Decode(codec.Native, bytes); err != nil || !reflect.DeepEqual(got, &point{3, 4}) {
		t.Errorf("came back as %v, %v", got, err)
	}
}

func TestFillMaps(t *testing.T) {
	state := &nested{}
	codec.FillMaps(state, &nested{ByName: map[string]*point{}})
	if state.ByName == nil || state.Points != nil {
		t.Errorf("%+v", state)
	}
	codec.FillMaps(state, "another type")
	codec.FillMaps(nil, nil)
}

type formed struct{ hidden string }

func TestAProgramsOwnFormOfAType(t *testing.T) {
	if err := codec.CheckType(reflect.TypeFor[formed]()); err == nil {
		t.Error("a type without exported fields has a form of its own before it was registered")
	}
	known.RegisterForm(reflect.TypeFor[formed](), known.Form{
		Encode: func(value any) ([]byte, error) {
			if pointer, ok := value.(*formed); ok {
				value = *pointer
			}
			if text := value.(formed).hidden; text != "bad" {
				return []byte(text), nil
			}
			return nil, errors.New("no form")
		},
		Decode: func(data []byte, behindPointer bool) (any, error) {
			if len(data) == 0 {
				return nil, errors.New("empty")
			}
			if !behindPointer {
				return formed{string(data)}, nil
			}
			return &formed{string(data)}, nil
		},
	})
	if err := codec.CheckType(reflect.TypeFor[*formed]()); err != nil {
		t.Error(err)
	}
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	for _, value := range []any{formed{"a"}, &formed{"b"}} {
		data, err := encoder.Append(nil, value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decoder.Decode(codec.Native, data); err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%v came back as %v, %v", value, got, err)
		}
	}
	for _, value := range []any{formed{"bad"}, (*formed)(nil)} {
		if out, err := encoder.Append([]byte("x"), value); err == nil || string(out) != "x" {
			t.Errorf("%v became %q, %v", value, out, err)
		}
	}
	empty, err := encoder.Append(nil, formed{})
	if err != nil {
		t.Fatal(err)
	}
	unknown := []byte{empty[0], 1, 'x'}
	for _, data := range [][]byte{empty, unknown, empty[:1], {empty[0], 9, 'x'}} {
		if value, err := decoder.Decode(codec.Native, data); err == nil {
			t.Errorf("%x was read as %v", data, value)
		}
	}
}

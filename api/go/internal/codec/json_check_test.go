package codec

import (
	"encoding/json"
	"errors"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"wallarooapi/internal/known"
)

type (
	doer     interface{ Do() int }
	halfJSON struct{ N int }
	halfText struct{ N int }
	halfKey  int
	inner    struct{ N int }
	wholeKey struct{ N int }
)

func (halfJSON) MarshalJSON() ([]byte, error)    { return []byte("7"), nil }
func (*halfText) UnmarshalText([]byte) error     { return nil }
func (halfKey) MarshalText() ([]byte, error)     { return []byte("x"), nil }
func (k wholeKey) MarshalText() ([]byte, error)  { return strconv.AppendInt(nil, int64(k.N), 10), nil }
func (k *wholeKey) UnmarshalText(b []byte) error { return json.Unmarshal(b, &k.N) }

// refusedLeaves has types that make CheckJSON refuse a struct with such a field, with a part of the error.
var refusedLeaves = map[reflect.Type]string{
	reflect.TypeFor[doer]():              "an interface with methods",
	reflect.TypeFor[error]():             "an interface with methods",
	reflect.TypeFor[func()]():            "which JSON has not",
	reflect.TypeFor[chan int]():          "which JSON has not",
	reflect.TypeFor[complex128]():        "which JSON has not",
	reflect.TypeFor[halfJSON]():          "has MarshalJSON and no UnmarshalJSON",
	reflect.TypeFor[halfText]():          "has UnmarshalText and no MarshalText",
	reflect.TypeFor[map[halfKey]int]():   "one of MarshalText and UnmarshalText",
	reflect.TypeFor[map[float64]int]():   "keys of type float64",
	reflect.TypeFor[struct{ n int }]():   "is not exported",
	reflect.TypeFor[struct{ *inner }]():  "embed it without the pointer",
	reflect.TypeFor[struct{ big.Int }](): "",
	reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	}): `are both "x"`,
}

var readableLeaves = []reflect.Type{
	reflect.TypeFor[int64](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[*bool](), reflect.TypeFor[[]string](),
	reflect.TypeFor[map[string]int](), reflect.TypeFor[time.Time](), reflect.TypeFor[any](), reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any](),
	reflect.TypeFor[map[wholeKey]int](), reflect.TypeFor[struct{ inner }](), reflect.TypeFor[sync.Mutex](),
	reflect.TypeFor[struct {
		F func() `json:"-"`
		N int
	}](),
}

func TestTypesThatJSONDoesNotReadAreRefused(t *testing.T) {
	for leaf, reason := range refusedLeaves {
		unreadable, incomplete := CheckJSON(reflect.StructOf([]reflect.StructField{{Name: "Part", Type: reflect.SliceOf(leaf)}}))
		var own *Error
		errors.As(errors.Join(unreadable, incomplete), &own)
		if reason != "" && (own == nil || !strings.Contains(own.Reason+own.Fix, reason) || !strings.Contains(Remedy(own), "of your own")) {
			t.Errorf("%s: %v, %v", leaf, unreadable, incomplete)
		}
	}
}

// FuzzJSONComesBackOrIsRefused draws types. JSON reads back the values of a type, or CheckJSON refuses the type.
// Numbers keep their values in interfaces, too.
func FuzzJSONComesBackOrIsRefused(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 3))
		var fields []reflect.StructField
		isRefused := false
		for _, name := range []string{"A", "B", "C"} {
			leaf := readableLeaves[random.IntN(len(readableLeaves))]
			if random.IntN(6) == 0 {
				for other, reason := range refusedLeaves {
					if leaf = other; reason != "" {
						isRefused = true
						break
					}
				}
			}
			if random.IntN(3) == 0 {
				leaf = reflect.SliceOf(leaf)
			}
			fields = append(fields, reflect.StructField{Name: name, Type: leaf})
		}
		drawn := reflect.StructOf(fields)
		if unreadable, incomplete := CheckJSON(drawn); unreadable != nil || incomplete != nil {
			if !isRefused {
				t.Errorf("%s is refused: %v, %v", drawn, unreadable, incomplete)
			}
			return
		} else if isRefused {
			t.Fatalf("%s is not refused", drawn)
		}
		value, back := reflect.New(drawn), reflect.New(drawn)
		fillJSON(random, value.Elem())
		text, err := json.Marshal(value.Interface())
		if err == nil {
			err = UnmarshalJSON(text, back.Interface())
		}
		if again, _ := json.Marshal(back.Interface()); err != nil || string(again) != string(text) || !reflect.DeepEqual(value.Interface(), back.Interface()) {
			t.Errorf("%s became %s (%v)", text, again, err)
		}
	})
}

// fillJSON sets all fields and elements that JSON writes. Interfaces get values of the types as which JSON reads them.
func fillJSON(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		v.Set(reflect.ValueOf([]any{"text", 2.5, float64(1 << 53), json.Number("1152921504606846977"), json.Number("-9007199254740993"),
			map[string]any{"a": json.Number("18446744073709551615")}}[random.IntN(6)]))
	case reflect.Map:
		item, key := reflect.New(v.Type().Elem()).Elem(), reflect.New(v.Type().Key()).Elem()
		fillJSON(random, item)
		fillJSON(random, key)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, item)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillJSON(random, v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			fill(v)
			return
		}
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() || v.Type().Field(i).Anonymous {
				fillJSON(random, field)
			}
		}
	case reflect.Func:
	default:
		fill(v)
	}
}

func TestAStateIsReadBackOnceItIsWritten(t *testing.T) {
	type kept struct{ N int }
	form := known.Form{
		Encode: func(any) ([]byte, error) { return []byte("x"), nil },
		Decode: func([]byte, bool) (any, error) { return nil, errors.New("it is an x") },
	}
	known.RegisterForm(reflect.TypeFor[kept](), form)
	if _, err := NewEncoder().AppendState(nil, &kept{}); err == nil || err.Error() != "it cannot be read back; it is an x" ||
		!strings.Contains(Remedy(err), "must read what") && !strings.Contains(Remedy(err), "the other must read") {
		t.Errorf("%v; %s", err, Remedy(err))
	}
	form.Incomplete = errors.New("lost")
	known.RegisterForm(reflect.TypeFor[kept](), form)
	if of := reflect.TypeFor[*kept](); CheckState(of) == nil || CheckType(of) != nil {
		t.Errorf("of a state: %v, of a message: %v", CheckState(of), CheckType(of))
	}
	form.Unreadable = errors.New("half")
	known.RegisterForm(reflect.TypeFor[kept](), form)
	if _, err := NewEncoder().Append(nil, kept{}); err == nil || CheckType(reflect.TypeFor[kept]()) == nil {
		t.Error("it is written")
	}
}

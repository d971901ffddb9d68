package codec

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	wa "wallarooapi"
)

type reading struct {
	Value  *float64
	Name   *string
	Seen   *bool
	At     *time.Time
	Tags   *[]string
	Twice  **int
	Two    *[2]int
	Inner  *reading
	List   []reading
	ByKey  map[string]reading
	ByPair map[pair]*int
	Any    any
	Rows   []*reading
	Lists  map[string]*[]**float64
	Ends   [2]*pair
}

type purchase struct {
	Customer string
	Amount   float64
	At       time.Time
}

type pair struct {
	A int
	B string
}

func init() {
	wa.RegisterType(reading{})
	wa.RegisterType(pair{})
	wa.RegisterType(purchase{})
	gob.Register(reading{})
}

func TestAPointerToAZeroValueArrives(t *testing.T) {
	zero, empty, no := 0.0, "", false
	for _, value := range []any{reading{Value: &zero, Name: &empty, Seen: &no}, &reading{At: &time.Time{}}} {
		if got := copied(t, NewEncoder(), NewDecoder(), value); !reflect.DeepEqual(got, value) {
			t.Errorf("%+v came back as %+v", value, got)
		}
	}
}

// FuzzPointersArrive writes frames of drawn values. Each value is read back as it was, and writing does not change it.
// gob reads an empty slice as nil.
func FuzzPointersArrive(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 2))
		encoder, decoder := NewEncoder(), NewDecoder()
		for number := range 5 {
			value := reflect.New(reflect.TypeFor[reading]())
			draw(random, value.Elem(), 3)
			made := value.Interface()
			if number%2 == 0 {
				made = value.Elem().Interface()
			}
			before, _, _ := appendMarks(nil, made)
			got := copied(t, encoder, decoder, made)
			now, _, _ := appendMarks(nil, made)
			after, _, _ := appendMarks(nil, got)
			if !reflect.DeepEqual(got, made) || !bytes.Equal(after, before) || !bytes.Equal(now, before) {
				t.Fatalf("%s\ncame back as\n%s", shownDeep(made), shownDeep(got))
			}
		}
	})
}

// BenchmarkRows measures a row without pointers, one with a float, and one with optional fields and nil elements.
func BenchmarkRows(b *testing.B) {
	half, name, at := 0.5, "ann", time.Unix(7, 0).UTC()
	for _, value := range []any{pair{7, "ann"}, purchase{"ann", 0.5, at}, reading{Value: &half, Name: &name, At: &at, List: []reading{{Name: &name}}}} {
		b.Run(fmt.Sprintf("%T", value), func(b *testing.B) {
			encoder, decoder := NewEncoder(), NewDecoder()
			first, err := encoder.Append(nil, value)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := decoder.Decode(Native, first); err != nil {
				b.Fatal(err)
			}
			var out []byte
			for b.Loop() {
				out, _ = encoder.Append(out[:0], value)
				if _, err := decoder.Decode(Native, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// twofold is a type whose new values have nil elements of the same type.
type twofold struct{ Both [2]*twofold }

func TestNilElementsInDeepValues(t *testing.T) {
	wa.RegisterType(twofold{})
	if _, err := NewEncoder().Append(nil, twofold{}); err == nil || !strings.Contains(err.Error(), "twofold leads back to itself") {
		t.Errorf("got %v", err)
	}
	value := node{Nodes: []*node{nil}}
	for range 2 * usualDepth {
		inner := value
		value = node{Next: &inner}
	}
	got := copied(t, NewEncoder(), NewDecoder(), value).(node)
	for got.Next != nil {
		got = *got.Next
	}
	if len(got.Nodes) != 1 || got.Nodes[0] != nil {
		t.Errorf("got %+v", got)
	}
}

func copied(t *testing.T, encoder *Encoder, decoder *Decoder, value any) any {
	t.Helper()
	data, err := encoder.Append([]byte("before"), value)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decoder.Decode(Native, slices.Clone(data[6:]))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func shownDeep(value any) string { return fmt.Sprintf("%+v", value) }

// draw sets v to a random value. Zero values, pointers to zero values and nil are as frequent as other values.
func draw(random *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Int:
		v.SetInt(int64(random.IntN(2)))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, math.Copysign(0, -1)}[random.IntN(3)])
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "b"}[random.IntN(3)])
	case reflect.Pointer:
		if random.IntN(3) > 0 && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			draw(random, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 && random.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			draw(random, v.Index(0), depth-1)
			draw(random, v.Index(1), 0)
		}
	case reflect.Map:
		for range random.IntN(3) {
			if depth < 1 {
				return
			}
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			draw(random, key, 1)
			draw(random, item, depth-1)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, item)
		}
	case reflect.Array:
		draw(random, v.Index(0), depth)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if random.IntN(2) == 0 {
				v.Set(reflect.ValueOf(time.Unix(7, 0).UTC()))
			}
			return
		}
		for i := range v.NumField() {
			draw(random, v.Field(i), depth)
		}
	case reflect.Interface:
		if depth > 0 && random.IntN(2) == 0 {
			item := reflect.New(reflect.TypeFor[reading]())
			draw(random, item.Elem(), depth-1)
			v.Set(item.Elem())
		}
	}
}

func TestTheRemedyForAFieldOfInterfaceTypeIsOfTheProgramsAPI(t *testing.T) {
	type unknown struct{ N int }
	defer IsTyped.Store(IsTyped.Load())
	for typed, own := range map[bool]string{true: "of your own (stream.Register)", false: "set wa.Serialize and wa.Deserialize"} {
		IsTyped.Store(typed)
		_, err := NewEncoder().Append(nil, reading{Any: unknown{1}})
		fix := Remedy(err)
		if !strings.HasPrefix(fix, "call gob.Register with a value of that type in an init function, or ") || !strings.Contains(fix, own) {
			t.Errorf("%v: %s", err, fix)
		}
	}
}

package codec

import (
	"encoding/gob"
	"fmt"
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
}

type pair struct {
	A int
	B string
}

func init() {
	wa.RegisterType(reading{})
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

// A drawn value comes back as it was, in a frame of many; an empty slice or map is none, as gob has it.
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
			if got := copied(t, encoder, decoder, made); !reflect.DeepEqual(got, made) {
				t.Fatalf("%s\ncame back as\n%s", shownDeep(made), shownDeep(got))
			}
		}
	})
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

// draw puts a value into v: zero values, pointers to them and nil as often as others.
func draw(random *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Int:
		v.SetInt(int64(random.IntN(2)))
	case reflect.Float64:
		v.SetFloat(float64(random.IntN(2)))
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "b"}[random.IntN(3)])
	case reflect.Pointer:
		if random.IntN(3) > 0 && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			draw(random, v.Elem(), depth-1)
			if v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
				v.SetZero() // gob has no pointer to nil
			}
		}
	case reflect.Slice:
		if depth > 0 && random.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			draw(random, v.Index(0), depth-1)
		}
	case reflect.Map:
		for range random.IntN(3) {
			if depth < 1 {
				return
			}
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			draw(random, key, 1)
			if draw(random, item, depth-1); item.Kind() == reflect.Pointer && item.IsNil() {
				continue // gob refuses it
			}
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

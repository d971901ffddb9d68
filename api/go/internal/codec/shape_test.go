package codec

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	wa "wallarooapi"
	"wallarooapi/internal/known"
)

type price struct {
	Bid  float64 `json:"bid"`
	Note string  `json:"-"`
}

type shaped struct {
	Count  int32 `json:"count,omitempty"`
	At     time.Time
	For    time.Duration
	Sum    *big.Int
	Prices map[string][]*price
	Next   *shaped
	Any    any
	Own    []secret
}

// secret writes itself.
type secret struct{ text string }

func (s secret) GobEncode() ([]byte, error)    { return []byte(s.text), nil }
func (s *secret) GobDecode(data []byte) error  { s.text = string(data); return nil }
func (s secret) MarshalText() ([]byte, error)  { return []byte(s.text), nil }
func (s *secret) UnmarshalText(d []byte) error { s.text = string(d); return nil }

type endless []endless

func TestShapeNamesWhatTheBytesHold(t *testing.T) {
	gob := `{"Any":"interface {}?","At":"time.Time","Count":"int","For":"int","Next":"struct","Own":"[]codec.secret?",` +
		`"Prices":"map[string][]struct","Prices[][].Bid":"float","Prices[][].Note":"string","Sum":"big.Int"}`
	asJSON := `{"Any":"interface {}?","At":"time.Time","For":"int","Next":"struct","Own":"[]codec.secret?",` +
		`"Prices":"map[string][]struct","Prices[][].bid":"float","Sum":"big.Int","count":"int"}`
	for _, each := range []struct {
		of     map[string]string
		wanted string
	}{
		{Shape(reflect.TypeFor[*shaped]()), gob},
		{JSONShape(reflect.TypeFor[shaped]()), asJSON},
		{Shape(reflect.TypeFor[*map[string]int]()), `{"":"map[string]int"}`},
		{Shape(reflect.TypeFor[endless]()), `{"":"[]struct"}`},
		{Shape(reflect.TypeFor[secret]()), `{"":"codec.secret?"}`},
	} {
		if made, _ := json.Marshal(each.of); string(made) != each.wanted {
			t.Errorf("made   %s\nwanted %s", made, each.wanted)
		}
	}
}

func TestNoShapeWhereTheProgramWritesItself(t *testing.T) {
	type mine struct{ N int }
	known.RegisterForm(reflect.TypeFor[mine](), known.Form{})
	if shape := Shape(reflect.TypeFor[*mine]()); shape != nil {
		t.Errorf("a form of the program's has the shape %v", shape)
	}
	wa.Serialize = func(any) []byte { return nil }
	defer func() { wa.Serialize = nil }()
	if shape := Shape(reflect.TypeFor[shaped]()); shape != nil {
		t.Errorf("with wa.Serialize there is the shape %v", shape)
	}
}

type within struct{ N int }

func TestAnEmbeddedStructThatGobLeavesOutIsRefused(t *testing.T) {
	type empty struct{}
	type holder struct {
		within
		M int
	}
	type marked struct {
		empty
		M int
	}
	if err := CheckType(reflect.TypeFor[holder]()); err == nil || err.Error() != "field within of codec.holder is not exported" {
		t.Errorf("found %v", err)
	}
	if err := CheckType(reflect.TypeOf(marked{empty{}, 1})); err != nil {
		t.Errorf("found %v", err)
	}
}

// Of two drawn types the shapes say whether gob reads the values of one as the other, and loses none of them.
func FuzzShapesSayWhatGobReads(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		old, now := drawn(random, 2), drawn(random, 2)
		was, is := Shape(old), Shape(now)
		fits, isSubset := true, true
		for path, text := range was {
			other, ok := is[path]
			isSubset = isSubset && ok
			fits = fits && (!ok || other == text)
		}
		value := reflect.New(old)
		fill(value.Elem())
		var bytes bytes.Buffer
		if err := gob.NewEncoder(&bytes).EncodeValue(value); err != nil {
			t.Fatal(err)
		}
		read := reflect.New(now)
		err := gob.NewDecoder(&bytes).DecodeValue(read)
		if isSubset && (err == nil) != fits {
			t.Errorf("%v as %v: fits is %v, error %v", was, is, fits, err)
		}
		if err != nil || !fits {
			return
		}
		back := reflect.New(old)
		bytes.Reset()
		_ = gob.NewEncoder(&bytes).EncodeValue(read)
		_ = gob.NewDecoder(&bytes).DecodeValue(back)
		if kept := reflect.DeepEqual(value.Interface(), back.Interface()); kept != isSubset {
			t.Errorf("%v as %v: kept is %v", was, is, kept)
		}
	})
}

var leaves = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[float32](), reflect.TypeFor[string](),
	reflect.TypeFor[*bool](), reflect.TypeFor[map[string]float64](), reflect.TypeFor[[]string](), reflect.TypeFor[time.Time](),
}

// drawn returns a struct with the field Same and some of three others.
func drawn(random *rand.Rand, depth int) reflect.Type {
	fields := []reflect.StructField{{Name: "Same", Type: reflect.TypeFor[int]()}}
	for _, name := range []string{"A", "B", "C"} {
		of := leaves[random.IntN(len(leaves))]
		if depth > 0 && random.IntN(3) == 0 {
			of = drawn(random, depth-1)
			if random.IntN(2) == 0 {
				of = reflect.SliceOf(of)
			}
		}
		if random.IntN(3) > 0 {
			fields = append(fields, reflect.StructField{Name: name, Type: of})
		}
	}
	return reflect.StructOf(fields)
}

// fill puts values that are not zero into all that a type has.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(7)
	case reflect.String:
		v.SetString("seven")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), item)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(7, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

package codec

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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

// secret has methods that serialize it.
type secret struct{ text string }

func (s secret) GobEncode() ([]byte, error)    { return []byte(s.text), nil }
func (s *secret) GobDecode(data []byte) error  { s.text = string(data); return nil }
func (s secret) MarshalText() ([]byte, error)  { return []byte(s.text), nil }
func (s *secret) UnmarshalText(d []byte) error { s.text = string(d); return nil }

type endless []endless

func TestShapeNamesWhatTheBytesHold(t *testing.T) {
	gob := `{"Any":"interface {}?","At":"time.Time","Count":"int32","For":"int64","Next":"struct","Own":"[]codec.secret?",` +
		`"Prices":"map[string][]struct","Prices[][].Bid":"float64","Prices[][].Note":"string","Sum":"big.Int"}`
	asJSON := `{"Any":"interface {}?","At":"time.Time","For":"int64","Next":"struct","Own":"[]codec.secret?",` +
		`"Prices":"map[string][]struct","Prices[][].bid":"float64","Sum":"big.Int","count":"int32"}`
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

// FuzzShapesSayWhatGobReads draws pairs of types. Their shapes say whether gob reads the values of one as the other
// without a loss.
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
			fits = fits && (!ok || width.ReplaceAllString(other, "") == width.ReplaceAllString(text, ""))
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

// width matches the sizes of numbers in a shape. gob reads a number as one of another size, and the values in this test
// fit all sizes.
var width = regexp.MustCompile(`(8|16|32|64|128)\b`)

var numbers = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[complex64](), reflect.TypeFor[complex128](),
}

// testdata/numbers.json says for each pair of number types whether gob reads all, some or no values of one type as the
// other. The runtime's tests compare this with the runtime's judgement of the shapes.
func TestWhatGobReadsOfOtherNumbers(t *testing.T) {
	var rows [][3]string
	for _, wrap := range []func(reflect.Type) reflect.Type{
		func(t reflect.Type) reflect.Type { return t }, reflect.SliceOf,
		func(t reflect.Type) reflect.Type { return reflect.ArrayOf(2, t) },
		func(t reflect.Type) reflect.Type { return reflect.MapOf(reflect.TypeFor[string](), t) },
	} {
		for _, old := range numbers {
			for _, now := range numbers {
				was, is := Shape(wrap(old))[""], Shape(wrap(now))[""]
				rows = append(rows, [3]string{was, is, kept(wrap(old), wrap(now), old)})
			}
		}
	}
	made := "[\n"
	for i, row := range rows {
		line, _ := json.Marshal(row)
		made += string(line) + map[bool]string{true: ",\n", false: "\n]\n"}[i+1 < len(rows)]
	}
	file := filepath.Join("testdata", "numbers.json")
	if os.Getenv("WALLAROO_WRITE_TESTDATA") != "" {
		if err := os.WriteFile(file, []byte(made), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, _ := os.ReadFile(file); string(found) != made {
		t.Errorf("%s is stale; WALLAROO_WRITE_TESTDATA=1 go test writes it", file)
	}
}

// kept says whether all, some or none of the extreme values of a type keep their values if gob reads them as another
// type.
func kept(old, now, number reflect.Type) string {
	extremes := []reflect.Value{reflect.New(number).Elem(), reflect.New(number).Elem()}
	fill(extremes[0])
	bits := number.Bits()
	switch largest := extremes[1]; {
	case largest.CanInt():
		largest.SetInt(1<<(bits-1) - 1)
	case largest.CanUint():
		largest.SetUint(1<<bits - 1)
	case largest.CanFloat():
		largest.SetFloat(map[int]float64{32: math.MaxFloat32, 64: 0.1}[bits])
	default:
		largest.SetComplex(map[int]complex128{64: math.MaxFloat32, 128: 0.1}[bits])
	}
	count := 0
	for _, extreme := range extremes {
		value := reflect.New(old)
		switch part := value.Elem(); part.Kind() {
		case reflect.Slice:
			part.Set(reflect.Append(part, extreme))
		case reflect.Array:
			part.Index(1).Set(extreme)
		case reflect.Map:
			part.Set(reflect.MakeMap(old))
			part.SetMapIndex(reflect.ValueOf("key"), extreme)
		default:
			part.Set(extreme)
		}
		read, back := reflect.New(now), reflect.New(old)
		var bytes bytes.Buffer
		err := gob.NewEncoder(&bytes).EncodeValue(value)
		if err == nil {
			err = gob.NewDecoder(&bytes).DecodeValue(read)
		}
		bytes.Reset()
		if err == nil && gob.NewEncoder(&bytes).EncodeValue(read) == nil && gob.NewDecoder(&bytes).DecodeValue(back) == nil &&
			reflect.DeepEqual(value.Interface(), back.Interface()) {
			count++
		}
	}
	return []string{"none", "some", "all"}[count]
}

var leaves = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[float32](), reflect.TypeFor[string](),
	reflect.TypeFor[*bool](), reflect.TypeFor[map[string]float64](), reflect.TypeFor[[]string](), reflect.TypeFor[time.Time](),
}

// drawn returns a struct type with the field Same, and with some of the fields A, B and C.
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

// fill sets all fields and elements of a value to values other than zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(7)
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

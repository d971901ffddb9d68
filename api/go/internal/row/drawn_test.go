package row_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/known"
	"wallarooapi/internal/row"
)

var drawnTexts = []string{"", "a", "é\u2028", "\x00\"\\/\n\u007f", "😀", "null", "NaN", "\ufffd"}

var scalarTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[symbol](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int64](),
	reflect.TypeFor[int32](), reflect.TypeFor[int16](), reflect.TypeFor[int8](), reflect.TypeFor[float64](), reflect.TypeFor[float32](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[json.Number](), reflect.TypeFor[time.Time](), reflect.TypeFor[trade](), reflect.TypeFor[leg](),
}

// drawn draws types, and values of them.
type drawn struct{ *rand.Rand }

// columnType draws the type of a column and its tag, which may be empty.
func (d drawn) columnType(depth int) (reflect.Type, string) {
	choice := d.IntN(8)
	if depth == 0 && choice < 4 {
		choice = 7
	}
	switch choice {
	case 0:
		item, tag := d.columnType(depth - 1)
		return reflect.SliceOf(item), wrapped("ARRAY<", tag)
	case 1:
		item, tag := d.columnType(depth - 1)
		return reflect.MapOf(scalarTypes[d.IntN(2)], item), wrapped("MAP<STRING, ", tag)
	case 2:
		return d.structType(depth - 1), ""
	case 3, 4:
		item, tag := d.columnType(max(depth-1, 0))
		if item.Kind() != reflect.Pointer {
			item = reflect.PointerTo(item)
		}
		return item, tag
	}
	t := scalarTypes[d.IntN(len(scalarTypes))]
	switch {
	case t == reflect.TypeFor[time.Time]():
		return t, []string{"", "DATE", "TIMESTAMP_NTZ"}[d.IntN(3)]
	case t == reflect.TypeFor[json.Number]():
		return t, []string{"", "DECIMAL(38,9)"}[d.IntN(2)]
	}
	return t, ""
}

func wrapped(opening, tag string) string {
	if tag == "" {
		return ""
	}
	return opening + tag + ">"
}

func (d drawn) structType(depth int) reflect.Type {
	var fields []reflect.StructField
	count := 1 + d.IntN(5)
	if d.IntN(20) == 0 {
		count = 70 // more columns than readStruct notes on the stack
	}
	for i := range count {
		of, tag := d.columnType(depth)
		tags := fmt.Sprintf(`json:"%s%d" spark:"%s"`, []string{"a", "Été", "x y"}[d.IntN(3)], i, tag)
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: of, Tag: reflect.StructTag(tags)})
	}
	return reflect.StructOf(fields)
}

// fill draws a value that a row can have.
func (d drawn) fill(v reflect.Value, tag string) {
	switch v.Interface().(type) {
	case time.Time:
		seconds := -62135596800 + d.Int64N(253402300800+62135596800)
		at := time.Unix(seconds, 1000*d.Int64N(1_000_000)).UTC()
		if strings.Contains(tag, "DATE") {
			at = at.Truncate(24 * time.Hour)
		}
		v.Set(reflect.ValueOf(at))
		return
	case json.Number:
		v.SetString([]string{"0", "-0.10", "12345678901234567890.5", "1e5", "-1.5E-3"}[d.IntN(5)])
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(drawnTexts[d.IntN(len(drawnTexts))] + drawnTexts[d.IntN(len(drawnTexts))])
	case reflect.Bool:
		v.SetBool(d.IntN(2) == 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e21, d.NormFloat64(), 0.1}[d.IntN(8)])
	case reflect.Pointer:
		if d.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			d.fill(v.Elem(), tag)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), d.IntN(4), 9))
		for i := range v.Len() {
			d.fill(v.Index(i), tag)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range d.IntN(4) {
			item := reflect.New(v.Type().Elem()).Elem()
			d.fill(item, tag)
			v.SetMapIndex(reflect.ValueOf(drawnTexts[d.IntN(len(drawnTexts))]).Convert(v.Type().Key()), item)
		}
	case reflect.Struct:
		d.fields(v)
	case reflect.Uint8:
		v.SetUint(d.Uint64N(256))
	default:
		v.SetInt(int64(d.Uint64()) >> d.IntN(64) >> (64 - v.Type().Bits()))
	}
}

func (d drawn) fields(v reflect.Value) {
	for i := range v.NumField() {
		// Of the embedded structs only trade's base has a column, its ID: trade's own Note hides the other.
		if field := v.Type().Field(i); field.Tag.Get("json") != "-" && (field.IsExported() || field.Anonymous) && field.Name != "base" {
			d.fill(v.Field(i), field.Tag.Get("spark"))
		} else if field.Name == "base" {
			v.Field(i).Field(0).SetInt(d.Int64())
		}
	}
}

// same is reflect.DeepEqual, except that floats are the same if their bits are, or if both are NaN.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		isNaN := math.IsNaN(a.Float()) && math.IsNaN(b.Float())
		return isNaN || math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return a.Len() == b.Len() && a.IsNil() == b.IsNil()
	case reflect.Map:
		for _, key := range a.MapKeys() {
			if other := b.MapIndex(key); !other.IsValid() || !same(a.MapIndex(key), other) {
				return false
			}
		}
		return a.Len() == b.Len() && a.IsNil() == b.IsNil()
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() {
			return a.Interface() == b.Interface()
		}
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	crossed := 0
	for seed := range uint64(1000) {
		d := drawn{rand.New(rand.NewPCG(seed, 7))}
		of := d.structType(3)
		rows, faults := row.Of(of)
		if len(faults) > 0 {
			t.Fatalf("seed %d: %s: %+v", seed, of, faults)
		}
		value, read := reflect.New(of).Elem(), reflect.New(of).Elem()
		d.fill(value, "")
		written, err := rows.Append(nil, value)
		if err != nil || !json.Valid(written) {
			t.Fatalf("seed %d: %v\n%s", seed, err, written)
		}
		if err := rows.Decode(written, read); err != nil || !same(value, read) {
			t.Fatalf("seed %d: %v\n%s\n%+v", seed, err, written, read)
		}
		if codec.CheckType(of) == nil {
			crossed++
			cross(t, rows, value, string(written))
		}
		d.spoil(t, rows, of, written)
	}
	if crossed < 300 {
		t.Errorf("only %d of the rows could be a message between stages", crossed)
	}
}

// cross serializes a row between stages, and within a state. The row that is read back has the same JSON.
func cross(t *testing.T, rows *row.Rows, value reflect.Value, written string) {
	t.Helper()
	known.Register(value.Type())
	state := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "N", Type: reflect.TypeFor[int]()}, {Name: "Rows", Type: reflect.MapOf(reflect.TypeFor[string](), reflect.PointerTo(value.Type()))},
	}))
	known.Register(state.Type())
	state.Elem().Field(1).Set(reflect.MakeMap(state.Elem().Field(1).Type()))
	state.Elem().Field(1).SetMapIndex(reflect.ValueOf("none"), reflect.Zero(reflect.PointerTo(value.Type())))
	state.Elem().Field(1).SetMapIndex(reflect.ValueOf("row"), value.Addr())
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	for _, message := range []any{value.Interface(), state.Interface(), value.Addr().Interface()} {
		data, err := encoder.Append(nil, message)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		read, err := decoder.Decode(codec.Native, data)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		back := reflect.Indirect(reflect.ValueOf(read))
		if back.Type() == state.Type().Elem() {
			if !back.Field(1).MapIndex(reflect.ValueOf("none")).IsNil() {
				t.Fatalf("nil came back as %+v", read)
			}
			back = back.Field(1).MapIndex(reflect.ValueOf("row")).Elem()
		}
		if now, err := rows.Append(nil, back); err != nil || string(now) != written {
			t.Fatalf("%v\n got %s\nwant %s", err, now, written)
		}
	}
}

// spoil changes bytes of a row. If the row can still be read, it is JSON, and its value can be written as a row.
func (d drawn) spoil(t *testing.T, rows *row.Rows, of reflect.Type, written []byte) {
	for range 5 {
		spoiled := append([]byte{}, written...)
		at := d.IntN(len(spoiled))
		if spoiled[at] = `{}[]",:\n0-.eZ`[d.IntN(14)]; d.IntN(3) == 0 {
			spoiled = spoiled[:at]
		}
		read := reflect.New(of).Elem()
		if rows.Decode(spoiled, read) != nil {
			continue
		}
		if _, err := rows.Append(nil, read); err != nil || !json.Valid(spoiled) {
			t.Fatalf("%s was read: %v", spoiled, err)
		}
	}
}

package row_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"wallarooapi/internal/row"
)

func TestRowsThatAreNone(t *testing.T) {
	rows := rowsOf[wide](t)
	for _, test := range []struct{ old, replacement, want string }{
		{`"Long":-9223372036854775808,`, ``, `column Long is missing`},
		{`"text":"é\"\n"`, `"text":null`, `column text is null; only the type *string takes null`},
		{`"text":"é\"\n"`, `"text":7`, `column text is 7; expected STRING`},
		{`"text":"é\"\n"`, `"text":"\ud800"`, `column text has a text with a lone surrogate`},
		{`"text":"é\"\n"`, `"text":"\x"`, `column text has a text that is not JSON: "\x"`},
		{`"text":"é\"\n"`, "\"text\":\"\t\"", `column text has a text with a control character`},
		{`"text":"é\"\n"`, "\"text\":\"\xff\"", `the row is not UTF-8`},
		{`true`, `1`, `column Flag is 1; expected BOOLEAN`},
		{`"Byte":127`, `"Byte":128`, `column Byte is 128; expected TINYINT`},
		{`"Byte":127`, `"Byte":1.0`, `column Byte is 1.0; expected TINYINT`},
		{`"Byte":127`, `"Byte":01`, `the row is not JSON at 1,"Double"`},
		{`"Byte":127`, `"Byte":"1"`, `column Byte is "1"; expected TINYINT`},
		{`"Byte":127`, `"Byte":null`, `column Byte is null; only the type *int8 takes null`},
		{`1e+300`, `1e400`, `column Double is 1e400; expected DOUBLE`},
		{`"Float":0.1`, `"Float":1e39`, `column Float is 1e39; expected FLOAT`},
		{`"Float":0.1`, `"Float":"inf"`, `column Float is "inf"; expected FLOAT`},
		{`1.50`, `"1.50"`, `column Decimal is "1.50"; expected DECIMAL(38,18)`},
		{`2026-01-31T12:00:00.123456Z`, `2026-01-31T12:00:00`, `column At is "2026-01-31T12:00:00"; expected TIMESTAMP`},
		{`2026-01-31T12:00:00.123456Z`, `0000-01-31T12:00:00Z`, `column At is "0000-01-31T12:00:00Z"; expected TIMESTAMP`},
		{`"2026-01-31"`, `"2026-02-30"`, `column Day is "2026-02-30"; expected DATE`},
		{`"2026-01-31"`, `"2026-01-31T01:00:00Z"`, `column Day is "2026-01-31T01:00:00Z"; expected DATE`},
		{`AQI=`, `AQI`, `column Data is "AQI"; expected BINARY`},
		{`["a",""]`, `["a",null]`, `column Names[1] is null; only the type *string takes null`},
		{`["a",""]`, `{}`, `column Names is {}; expected ARRAY<STRING>`},
		{`["a",""]`, `["a" ""]`, `column Names is not JSON at ""]`},
		{`"b":"NaN"`, `"b":null`, `column Prices["b"] is null; only the type *float64 takes null`},
		{`"Qty":null`, `"Qty":"x"`, `column Legs[0].Qty is "x"; expected INT`},
		{`"Qty":null`, `"Q":null`, `column Legs[0].Qty is missing`},
		{`"Maybe":null`, `"Maybe":null,"maybe":1`, `column Maybe is there twice`},
		{`"Maybe":null`, `"Maybe":nul`, `column Maybe is nul}; expected BIGINT`},
		{`"Maybe":null`, `"Maybe":null,"x":]`, `the row is not JSON at ]`},
		{`"Maybe":null`, `"Maybe":null,`, `the row is not JSON at }`},
		{`"Maybe":null}`, `"Maybe":null`, `the row is not JSON at its end`},
		{`"Maybe":null}`, `"Maybe":null}{}`, `the row is followed by {}`},
		{wideJSON, `null`, `the row is null; only the type`},
		{wideJSON, `[]`, `the row is []; expected STRUCT<`},
		{wideJSON, ``, `the row is cut; expected STRUCT<`},
	} {
		text := strings.Replace(wideJSON, test.old, test.replacement, 1)
		var read wide
		err := rows.Decode([]byte(text), reflect.ValueOf(&read).Elem())
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s\n got %v\nwant %s", test.replacement, err, test.want)
		}
	}
}

func TestMessagesThatAreNoRows(t *testing.T) {
	rows := rowsOf[wide](t)
	for want, spoil := range map[string]func(w *wide){
		`column text is not UTF-8: "\xff"`:     func(w *wide) { w.Text = "\xff" },
		`column Names[0] is not UTF-8: "\xff"`: func(w *wide) { w.Names = []string{"\xff"} },
		`column Prices has a key of 50001 bytes; a key of a MAP has at most 50000`: func(w *wide) {
			w.Prices = map[string]float64{strings.Repeat("k", 50_001): 1, strings.Repeat("k", 50_000): 1}
		},
		`column Prices["` + strings.Repeat("k", 38) + `…] is not UTF-8: "` + strings.Repeat("k", 38) + `…`: func(w *wide) {
			w.Prices = map[string]float64{strings.Repeat("k", 1000) + "\xff": 1}
		},
		`column Prices["\xff"] is not UTF-8: "\xff"`:                                      func(w *wide) { w.Prices = map[string]float64{"\xff": 1} },
		`column Decimal is ""; expected a number for DECIMAL(38,18)`:                      func(w *wide) { w.Decimal = "" },
		`column Decimal is "1,5"; expected a number for DECIMAL(38,18)`:                   func(w *wide) { w.Decimal = "1,5" },
		`column Decimal is "NaN"; expected a number for DECIMAL(38,18)`:                   func(w *wide) { w.Decimal = "NaN" },
		`column At is 10000-01-01T00:00:00Z; expected a TIMESTAMP in the years 1 to 9999`: func(w *wide) { w.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		`column At is 0000-12-31T23:00:00Z; expected a TIMESTAMP in the years 1 to 9999`: func(w *wide) {
			w.At = time.Date(1, 1, 1, 1, 0, 0, 0, time.FixedZone("", 2*60*60))
		},
		`column Day is 2026-01-31T00:00:00+02:00; expected a DATE: midnight, UTC`: func(w *wide) {
			w.Day = time.Date(2026, 1, 31, 0, 0, 0, 0, time.FixedZone("", 2*60*60))
		},
		`column Legs[1].At is 0001-01-01T00:00:00.000000001Z; expected a DATE: midnight, UTC`: func(w *wide) {
			w.Legs = []leg{{}, {At: time.Time{}.Add(1)}}
		},
		`column Day is 10000-01-01T00:00:00Z; expected a DATE in the years 1 to 9999`: func(w *wide) {
			w.Day = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		},
	} {
		spoiled := wide{Decimal: "0"}
		spoil(&spoiled)
		out, err := rows.Append([]byte("> "), reflect.ValueOf(spoiled))
		if err == nil || err.Error() != want || string(out) != "> " {
			t.Errorf("got %v, %q\nwant %s", err, out, want)
		}
	}
}

func TestNilsOfColumnsWithoutNull(t *testing.T) {
	type nils struct {
		Data  []byte
		Names []string
		Map   map[string]int
		Maybe *[]string
		Items []*string
		Float float64
		Small float32
		At    time.Time
	}
	rows := rowsOf[nils](t)
	at := time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	out, err := rows.Append(nil, reflect.ValueOf(nils{Items: []*string{nil}, Float: math.Inf(-1), Small: float32(math.Inf(1)), At: at}))
	want := `{"Data":"","Names":[],"Map":{},"Maybe":null,"Items":[null],"Float":"-Infinity","Small":"Infinity","At":"1969-12-31T23:59:59.999999Z"}`
	if err != nil || string(out) != want {
		t.Errorf("got %s, %v", out, err)
	}
	var read nils
	if err := rows.Decode(out, reflect.ValueOf(&read).Elem()); err != nil || read.Names == nil || read.Data == nil || read.Map == nil || read.Maybe != nil {
		t.Errorf("got %+v, %v", read, err)
	}
}

// plain has only columns with the same form in a row as in encoding/json.
type plain struct {
	Text  string             `json:"text"`
	Long  *int64             `json:"long"`
	Float float64            `json:"float"`
	Names []string           `json:"names"`
	Map   map[string]float32 `json:"map"`
	Data  []byte             `json:"data"`
}

// FuzzDecode checks that everything that can be read is JSON, and that encoding/json reads the same values.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"text":"a","long":null,"float":1.5e3,"names":["\u00e9",""],"map":{"a":1},"data":"AQI="}`, `{"text":"\ud83d\ude00","x":[{},null]}`,
		`{`, `[]`, `null`, `{"text" : "\\"}`, `{"float":-0}`,
	} {
		f.Add([]byte(text))
	}
	rows, _ := row.Of(reflect.TypeFor[plain]())
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want plain
		if rows.Decode(data, reflect.ValueOf(&got).Elem()) != nil {
			return
		}
		if err := json.Unmarshal(data, &want); err != nil && !strings.Contains(string(data), "NaN") && !strings.Contains(string(data), "Infinity") {
			t.Fatalf("%q was read, but: %v", data, err)
		} else if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %+v, want %+v", data, got, want)
		}
	})
}

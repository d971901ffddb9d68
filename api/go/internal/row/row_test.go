package row_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"wallarooapi/internal/row"
)

type symbol string

type base struct {
	ID   int64 `json:"id"`
	Note string
}

type trade struct {
	base
	Note    *string `json:",omitempty"`
	Symbol  symbol  `json:"symbol"`
	Secrets `json:"secrets of it"`
	Ignored chan int `json:"-"`
	_       int
}

type Secrets struct{ Code []byte }

type leg struct {
	At  time.Time `spark:"DATE"`
	Qty *int32
}

func rowsOf[T any](t *testing.T) *row.Rows {
	t.Helper()
	rows, faults := row.Of(reflect.TypeFor[T]())
	if len(faults) > 0 {
		t.Fatalf("%+v", faults)
	}
	return rows
}

func TestSchemaFollowsFromTheType(t *testing.T) {
	for _, test := range []struct {
		of   any
		want string
	}{
		{struct{ A string }{}, "A STRING NOT NULL"},
		{struct{ A *string }{}, "A STRING"},
		{struct{ A bool }{}, "A BOOLEAN NOT NULL"},
		{struct{ A, B int }{}, "A BIGINT NOT NULL, B BIGINT NOT NULL"},
		{struct{ A int64 }{}, "A BIGINT NOT NULL"},
		{struct{ A int32 }{}, "A INT NOT NULL"},
		{struct{ A int16 }{}, "A SMALLINT NOT NULL"},
		{struct{ A int8 }{}, "A TINYINT NOT NULL"},
		{struct{ A float64 }{}, "A DOUBLE NOT NULL"},
		{struct{ A *float32 }{}, "A FLOAT"},
		{struct{ A json.Number }{}, "A DECIMAL(38,18) NOT NULL"},
		{struct {
			A *json.Number `spark:"decimal(10, 2)"`
		}{}, "A DECIMAL(10,2)"},
		{struct{ A time.Time }{}, "A TIMESTAMP NOT NULL"},
		{struct {
			A *time.Time `spark:"TIMESTAMP_NTZ"`
		}{}, "A TIMESTAMP_NTZ"},
		{struct {
			A time.Time `spark:"DATE"`
		}{}, "A DATE NOT NULL"},
		{struct {
			A []time.Time            `spark:"ARRAY<DATE>"`
			B map[string]json.Number `spark:"MAP<STRING, DECIMAL(5,0)>"`
			C [][]*time.Time         `spark:"ARRAY<ARRAY<TIMESTAMP>>"`
		}{}, "A ARRAY<DATE> NOT NULL, B MAP<STRING, DECIMAL(5,0)> NOT NULL, C ARRAY<ARRAY<TIMESTAMP>> NOT NULL"},
		{struct{ A []byte }{}, "A BINARY NOT NULL"},
		{struct{ A []*string }{}, "A ARRAY<STRING> NOT NULL"},
		{struct{ A *map[symbol][]int8 }{}, "A MAP<STRING, ARRAY<TINYINT>>"},
		{struct{ A leg }{}, "A STRUCT<At: DATE NOT NULL, Qty: INT> NOT NULL"},
		{struct{ A []leg }{}, "A ARRAY<STRUCT<At: DATE NOT NULL, Qty: INT>> NOT NULL"},
		{struct {
			A string `json:"a b"`
			B *int   "json:\"`\""
			Ä int
		}{}, "`a b` STRING NOT NULL, ```` BIGINT, `Ä` BIGINT NOT NULL"},
		{trade{}, "id BIGINT NOT NULL, Note STRING, symbol STRING NOT NULL, `secrets of it` STRUCT<Code: BINARY NOT NULL> NOT NULL"},
	} {
		rows, faults := row.Of(reflect.TypeOf(test.of))
		if len(faults) > 0 {
			t.Errorf("%T: %+v", test.of, faults)
		} else if got := rows.Schema(); got != test.want {
			t.Errorf("%T\n got %s\nwant %s", test.of, got, test.want)
		}
	}
}

type itself struct {
	Name string
	Next []itself
}

type celsius float64

func (c celsius) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%g°", float64(c)), nil }

type stamped struct{ time.Time }

type twice struct {
	base
	other
}

type other struct{ Note int32 }

func TestTypesWithoutAColumn(t *testing.T) {
	const column = "a type that a column can have"
	for _, test := range []struct {
		of   any
		want row.Fault
	}{
		{1, row.Fault{"T", "int", "a struct whose fields are the columns", "pass a struct"}},
		{&leg{}, row.Fault{"T", "*row_test.leg", "a struct whose fields are the columns", "pass a struct"}},
		{time.Time{}, row.Fault{"T", "time.Time", "a struct whose fields are the columns", "pass a struct"}},
		{struct{}{}, row.Fault{"T", "struct {}, which has no fields", "a struct whose fields are the columns", "give it an exported field"}},
		{struct{ a int }{}, row.Fault{"T.a", "not exported", "an exported field", "export it, or leave it out with the tag `json:\"-\"`"}},
		{struct{ A chan int }{}, row.Fault{"T.A", "chan int", column, "leave it out with the tag"}},
		{struct{ A func() }{}, row.Fault{"T.A", "func()", column, "leave it out with the tag"}},
		{struct{ A any }{}, row.Fault{"T.A", "interface {}", column, "use a struct with the fields that it has"}},
		{struct{ A complex64 }{}, row.Fault{"T.A", "complex64", column, "use two fields of type float64"}},
		{struct{ A []uint16 }{}, row.Fault{"T.A[]", "uint16", column, "use int64"}},
		{struct{ A uint }{}, row.Fault{"T.A", "uint", column, "use int64, or json.Number with the tag `spark:\"DECIMAL(20,0)\"`"}},
		{struct{ A [2]string }{}, row.Fault{"T.A", "[2]string", column, "use []string"}},
		{struct{ A map[int]bool }{}, row.Fault{"T.A", "map[int]bool", column, "use map[string]bool"}},
		{struct{ A **int }{}, row.Fault{"T.A", "**int", column, "use one pointer"}},
		{struct{ A *itself }{}, row.Fault{"T.A.Next[]", "row_test.itself, which has itself in it", column, "use a slice of structs without it"}},
		{struct{ A celsius }{}, row.Fault{"T.A", "row_test.celsius with a method MarshalText", column, "use a plain type, such as string"}},
		{struct{ A map[celsiusText]int }{}, row.Fault{"T.A[key]", "row_test.celsiusText with a method UnmarshalText", column, "use a plain type"}},
		{stamped{}, row.Fault{"stamped", "row_test.stamped with a method MarshalJSON", column, "give an embedded field that has it a name"}},
		{struct{ *base }{}, row.Fault{"T.base", "a pointer that is embedded", "a struct", "embed it without the pointer"}},
		{struct {
			A int
			B int `json:"a"`
		}{}, row.Fault{"T.B", `column "a", which is "A" for Spark`, "a name of its own", "give it another name with a tag"}},
		{twice{}, row.Fault{"twice.other.Note", `column "Note", which twice.base.Note is, too`, "a name of its own", "give one of them another name"}},
		{struct {
			A string `spark:"INT"`
		}{}, row.Fault{"T.A", "tagged `spark:\"INT\"`", "STRING, the only one for string", "correct the tag"}},
		{struct {
			A json.Number `spark:"DECIMAL(39,2)"`
		}{}, row.Fault{"T.A", "tagged `spark:\"DECIMAL(39,2)\"`", "DECIMAL(p,s) with p from 1 to 38 and s from 0 to p", "correct the tag"}},
		{struct {
			A json.Number `spark:"DECIMAL(2,3)"`
		}{}, row.Fault{"T.A", "tagged `spark:\"DECIMAL(2,3)\"`", "DECIMAL(p,s) with p from 1 to 38 and s from 0 to p", "correct the tag"}},
		{struct {
			A []time.Time `spark:"DATE"`
		}{}, row.Fault{"T.A", "tagged `spark:\"DATE\"`", "ARRAY<...>", "correct the tag"}},
		{struct {
			A time.Time `spark:"DAY"`
		}{}, row.Fault{"T.A", "tagged `spark:\"DAY\"`", "TIMESTAMP, TIMESTAMP_NTZ or DATE", "correct the tag"}},
		{struct {
			A leg `spark:"STRUCT<>"`
		}{}, row.Fault{"T.A", "tagged `spark:\"STRUCT<>\"`", "none: each field of row_test.leg has its own", "correct the tag"}},
		{struct {
			A []byte `spark:"STRING"`
		}{}, row.Fault{"T.A", "tagged `spark:\"STRING\"`", "BINARY, the only one for []uint8", "correct the tag"}},
	} {
		_, faults := row.Of(reflect.TypeOf(test.of))
		if len(faults) != 1 {
			t.Errorf("%T: got %+v", test.of, faults)
			continue
		}
		got := faults[0]
		if isShort := strings.HasPrefix(got.Fix, test.want.Fix) || strings.HasSuffix(got.Fix, test.want.Fix); isShort {
			got.Fix = test.want.Fix
		}
		if got != test.want {
			t.Errorf("%T\n got %+v\nwant %+v", test.of, got, test.want)
		}
	}
}

type celsiusText string

func (*celsiusText) UnmarshalText([]byte) error { return nil }

func TestAllFaultsOfATypeAreFound(t *testing.T) {
	_, faults := row.Of(reflect.TypeFor[struct {
		A chan int
		B struct{ C uint }
		d int
	}]())
	var fields []string
	for _, fault := range faults {
		fields = append(fields, fault.Field)
	}
	if !reflect.DeepEqual(fields, []string{"T.d", "T.A", "T.B.C"}) {
		t.Errorf("got %q", fields)
	}
}

type wide struct {
	Text    string `json:"text"`
	Flag    bool
	Long    int64
	Byte    int8
	Double  float64
	Float   float32
	Decimal json.Number
	At      time.Time
	Day     time.Time `spark:"DATE"`
	Data    []byte
	Names   []string
	Prices  map[string]float64
	Legs    []leg
	Maybe   *int
}

const wideJSON = `{"text":"é\"\n","Flag":true,"Long":-9223372036854775808,"Byte":127,"Double":1e+300,"Float":0.1,"Decimal":1.50,` +
	`"At":"2026-01-31T12:00:00.123456Z","Day":"2026-01-31","Data":"AQI=","Names":["a",""],"Prices":{"a":-0.0,"b":"NaN"},` +
	`"Legs":[{"At":"0001-01-01","Qty":null},{"At":"9999-12-31","Qty":-1}],"Maybe":null}`

func TestARowInJSON(t *testing.T) {
	rows := rowsOf[wide](t)
	var read wide
	if err := rows.Decode([]byte(wideJSON), reflect.ValueOf(&read).Elem()); err != nil {
		t.Fatal(err)
	}
	if read.Text != "é\"\n" || read.Day != time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC) || read.Decimal != "1.50" || *read.Legs[1].Qty != -1 {
		t.Errorf("got %+v", read)
	}
	written, err := rows.Append([]byte("> "), reflect.ValueOf(read))
	if err != nil || string(written) != "> "+wideJSON {
		t.Errorf("got %s, %v", written, err)
	}
}

func TestRowsInOtherForms(t *testing.T) {
	rows := rowsOf[leg](t)
	for _, text := range []string{
		` { "Qty" : null , "At" : "2026-01-31T00:00:00Z" } `, `{"at":"2026-01-31","QTY":null}`,
		`{"At":"2026-01-31T02:00:00.000000+02:00","more":[{"x":"]}"},-1.5e3],"Qty":null}`, `{"\u0041t":"2026-01-\u00331","Qty":null}`,
	} {
		var read leg
		err := rows.Decode([]byte(text), reflect.ValueOf(&read).Elem())
		if err != nil || read != (leg{At: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}) {
			t.Errorf("%s: got %v, %v", text, read, err)
		}
	}
}

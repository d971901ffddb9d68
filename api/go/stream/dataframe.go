package stream

import (
	"cmp"
	"maps"
	"reflect"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/row"
	"wallarooapi/internal/topology"
)

// dataFrame is the name of the format for a source that reads a DataFrame of a PySpark job, and for a sink that makes
// one.
const dataFrame = "dataframe"

// DataFrameSource reads the rows of a DataFrame. Your own PySpark job loads the application and calls its `apply` with
// one DataFrame for each source, under the source's name. T is a struct whose fields are the columns:
//
//	type Trade struct {
//		Symbol string      `json:"symbol"`
//		Price  json.Number `json:"price" spark:"DECIMAL(10,2)"`
//		Note   *string     `json:"note"`
//		At     time.Time   `json:"at"`
//	}
//
// Go types correspond to these Spark types:
//
//	string                       STRING
//	bool                         BOOLEAN
//	int, int64                   BIGINT
//	int32, int16, int8           INT, SMALLINT, TINYINT
//	float64, float32             DOUBLE, FLOAT
//	json.Number                  DECIMAL(38,18), or the type in a tag: spark:"DECIMAL(10,2)"
//	time.Time                    TIMESTAMP, or with a tag TIMESTAMP_NTZ (its time as UTC) or DATE (midnight UTC)
//	[]byte                       BINARY
//	[]E                          ARRAY<E>
//	map[string]E                 MAP<STRING, E>
//	a struct                     STRUCT<...>
//	*E                           E, with nil for null
//
// A named type is treated like its underlying type. The tag of a slice or map contains the whole type, such as
// spark:"ARRAY<DATE>".
//
// A column has the name in the field's json tag, or else the name of the field. Spark ignores case when it compares
// names. Other options of the json tag are ignored. Fields of embedded structs are columns, as in encoding/json. The
// tag `json:"-"` leaves a field out. These are reported (T207): a field that is not exported, a type that is not in
// the list, and a tag that does not fit the type.
//
// A row whose columns do not fit T becomes a dead letter (C505) that names the column: a column is missing, has a
// value of another type, or is null although its type is not a pointer. The same applies to items of slices and maps.
// Columns that T does not have are ignored. Times are in UTC.
func DataFrameSource[T any]() Source[T] {
	return rowSource[T]("DataFrameSource", Spark{Format: dataFrame})
}

// DataFrameSink writes messages as rows of a DataFrame. `apply` returns the DataFrame under the sink's name (see
// Named). T has columns by the rules of DataFrameSource, and every row has all columns. Nil slices and maps are written
// as empty ones. Only nil pointers are written as null. Times are truncated to microseconds.
//
// A message becomes a dead letter (C501) that names the column if Spark cannot represent a value: a DATE that is not
// midnight UTC, a time outside the years 1 to 9999, a json.Number that is not a number or has more digits than its
// DECIMAL, a text that is not UTF-8, or a map with a key of more than 50,000 bytes.
func DataFrameSink[T any]() Sink[T] {
	return rowSink[T]("DataFrameSink", Spark{Format: dataFrame})
}

// SparkRowSource reads a Spark source like SparkSource, but a message is a whole row. T is a struct as for
// DataFrameSource. format.Schema and format.Value must be empty, because they follow from T (T207). format.Key and
// format.Timestamp give messages a key and a time. To read a DataFrame with a key or a time, set format.Format to
// "dataframe".
func SparkRowSource[T any](format Spark) Source[T] { return rowSource[T]("SparkRowSource", format) }

// SparkRowSink writes messages as whole rows to a Spark sink. T is a struct as for DataFrameSink. format.Value is a
// select list over the columns; if empty, all columns are written. format.Schema must be empty, because it follows from
// T (T207). format.Key and format.Timestamp are for sources only, and must be empty, too (T207).
func SparkRowSink[T any](format Spark) Sink[T] { return rowSink[T]("SparkRowSink", format) }

const allColumns = "*"

func rowSource[T any](method string, format Spark) Source[T] {
	rows, found := rowsOf[T](method)
	found = append(found, follows(method, "Schema", format.Schema)...)
	found = append(found, follows(method, "Value", format.Value)...)
	format.Value = allColumns
	edge := &topology.Spark{Format: format.Format, Options: maps.Clone(format.Options), Schema: schemaOf(rows), Value: allColumns,
		Key: format.Key, Timestamp: format.Timestamp}
	found = append(found, checkFormat(method, format)...)
	return Source[T]{declaration.Source{Edge: edge, Given: &rowReader[T]{rowForm[T]{rows}}, Found: found}}
}

func rowSink[T any](method string, format Spark) Sink[T] {
	rows, found := rowsOf[T](method)
	found = append(found, follows(method, "Schema", format.Schema)...)
	format.Schema, format.Value = "", cmp.Or(format.Value, allColumns)
	edge := &topology.Spark{Format: format.Format, Options: maps.Clone(format.Options), Schema: schemaOf(rows), Value: format.Value}
	found = append(found, checkFormat(method, format)...)
	found = append(found, checkSinkFormat(method, format)...)
	made := &rowWriter[T]{rowForm[T]{rows}}
	return Sink[T]{declaration.Sink{Edge: edge, Given: made, Encode: declaration.Values(made), Found: found}}
}

// follows returns a finding (T207) if the program sets a parameter that must follow from the type of the rows.
func follows(method, parameter, value string) []diagnostic.Diagnostic {
	if value == "" {
		return nil
	}
	return []diagnostic.Diagnostic{diagnostic.Wrong(method, parameter, diagnostic.Shown(value), "none: it follows from the type of the rows", "leave it out")}
}

// rowsOf returns the conversion of values of type T to rows and back, or the findings (T207) about fields that cannot
// be columns.
func rowsOf[T any](method string) (*row.Rows, []diagnostic.Diagnostic) {
	rows, faults := row.Of(reflect.TypeFor[T]())
	if len(faults) == 0 {
		return rows, nil
	}
	var found []diagnostic.Diagnostic
	for _, fault := range faults {
		found = append(found, diagnostic.Wrong(method, fault.Field, fault.Actual, fault.Expected, fault.Fix))
	}
	return nil, found
}

// schemaOf returns the columns as Spark DDL, or "" if rows is nil because the type of the rows has findings.
func schemaOf(rows *row.Rows) string {
	if rows == nil {
		return ""
	}
	return rows.Schema()
}

// rowForm is the common part of the decoder and the encoder of rows.
type rowForm[T any] struct{ rows *row.Rows }

func (*rowForm[T]) GoSymbol() string { return reflect.TypeFor[T]().String() }

func (f *rowForm[T]) EncodeRow(message any) ([]byte, error) {
	return f.rows.Append(nil, reflect.ValueOf(message.(T)))
}

// rowReader is the decoder of rows.
type rowReader[T any] struct{ rowForm[T] }

func (r *rowReader[T]) Decode(payload []byte) any {
	var message T
	if err := r.rows.Decode(payload, reflect.ValueOf(&message).Elem()); err != nil {
		panic(err)
	}
	return message
}

// rowWriter is the encoder of rows.
type rowWriter[T any] struct{ rowForm[T] }

func (w *rowWriter[T]) Encode(data any) []byte {
	encoded, err := w.EncodeRow(data)
	if err != nil {
		panic(err)
	}
	return encoded
}

package stream

import (
	"cmp"
	"reflect"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/row"
	"wallarooapi/internal/topology"
)

// dataFrame is the format of rows that a job of PySpark hands to the application, or takes from it.
const dataFrame = "dataframe"

// DataFrameSource takes the rows of a DataFrame: a job of PySpark of your own loads the application, and its `apply` gets a DataFrame for each
// source by the source's name. T is a struct whose fields are the columns:
//
//	type Trade struct {
//		Symbol string      `json:"symbol"`
//		Price  json.Number `json:"price" spark:"DECIMAL(10,2)"`
//		Note   *string     `json:"note"`
//		At     time.Time   `json:"at"`
//	}
//
// The types of Go and of Spark:
//
//	string                       STRING
//	bool                         BOOLEAN
//	int, int64                   BIGINT
//	int32, int16, int8           INT, SMALLINT, TINYINT
//	float64, float32             DOUBLE, FLOAT
//	json.Number                  DECIMAL(38,18), by a tag another: spark:"DECIMAL(10,2)"
//	time.Time                    TIMESTAMP, by a tag TIMESTAMP_NTZ (its time as UTC) or DATE (midnight UTC)
//	[]byte                       BINARY
//	[]E                          ARRAY<E>
//	map[string]E                 MAP<STRING, E>
//	a struct                     STRUCT<...>
//	*E                           E, which may be null: nil
//
// Named types are as those that they are made of. The tag of a slice or map has the whole type, such as spark:"ARRAY<DATE>".
//
// A column has the name of the field's json tag, or that of the field; Spark compares names without regard to case. Other options of the tag
// do not count. Fields of embedded structs are columns, as in encoding/json; the tag `json:"-"` leaves a field out. A field that is not
// exported, or whose type is not in the list, is found (T207), so is a tag that does not fit.
//
// A row becomes a message as it is, or a dead letter (C505) that names the column: one that is missing, has a value of another type, or is
// null where its type is no pointer; the same goes for items of slices and maps. Columns that T does not have are passed over. Times come in UTC.
func DataFrameSource[T any]() Source[T] {
	return rowSource[T]("DataFrameSource", Spark{Format: dataFrame})
}

// DataFrameSink gives messages as the rows of a DataFrame, which `apply` returns under the sink's name (Named). Columns and findings are
// those of DataFrameSource, and every row has all columns. Nil slices and maps are empty ones; nil is null of pointers alone. What is less
// than a microsecond is cut off.
//
// A message is a dead letter (C501) that names the column where Spark has no such value: a DATE that is not midnight UTC, a time outside of
// the years 1 to 9999, a json.Number that is no number or has more digits than its DECIMAL, a text that is not UTF-8.
func DataFrameSink[T any]() Sink[T] {
	return rowSink[T]("DataFrameSink", Spark{Format: dataFrame})
}

// SparkRowSource reads a source of Spark, as SparkSource does, with whole rows as messages: T is as for DataFrameSource. Schema and Value
// follow from it; to pass them is found (T207). Key and Timestamp give messages a key and a time, and do so for a DataFrame, too, whose format
// is "dataframe".
func SparkRowSource[T any](format Spark) Source[T] { return rowSource[T]("SparkRowSource", format) }

// SparkRowSink writes a sink of Spark, with messages as whole rows: T is as for DataFrameSink. Value, a select list over the columns, is all of
// them when it is empty. Schema follows from T; to pass it is found (T207), so is a field of sources.
func SparkRowSink[T any](format Spark) Sink[T] { return rowSink[T]("SparkRowSink", format) }

const allColumns = "*"

func rowSource[T any](method string, format Spark) Source[T] {
	rows, found := rowsOf[T](method)
	found = append(found, follows(method, "Schema", format.Schema)...)
	found = append(found, follows(method, "Value", format.Value)...)
	format.Value = allColumns
	edge := &topology.Spark{Format: format.Format, Options: format.Options, Schema: schemaOf(rows), Value: allColumns,
		Key: format.Key, Timestamp: format.Timestamp}
	found = append(found, checkFormat(method, format)...)
	return Source[T]{declaration.Source{Edge: edge, Given: &rowReader[T]{rowForm[T]{rows}}, Found: found}}
}

func rowSink[T any](method string, format Spark) Sink[T] {
	rows, found := rowsOf[T](method)
	found = append(found, follows(method, "Schema", format.Schema)...)
	format.Schema, format.Value = "", cmp.Or(format.Value, allColumns)
	edge := &topology.Spark{Format: format.Format, Options: format.Options, Schema: schemaOf(rows), Value: format.Value}
	found = append(found, checkFormat(method, format)...)
	found = append(found, checkSinkFormat(method, format)...)
	made := &rowWriter[T]{rowForm[T]{rows}}
	return Sink[T]{declaration.Sink{Edge: edge, Given: made, Encoder: made, Found: found}}
}

// follows reports options that were passed although they follow from the type of the rows.
func follows(method, parameter, value string) []diagnostic.Diagnostic {
	if value == "" {
		return nil
	}
	return []diagnostic.Diagnostic{diagnostic.Of("T207", "method", method, "parameter", parameter, "actual", diagnostic.Shown(value),
		"expected", "none: it follows from the type of the rows", "fix", "leave it out")}
}

func rowsOf[T any](method string) (*row.Rows, []diagnostic.Diagnostic) {
	rows, faults := row.Of(reflect.TypeFor[T]())
	if len(faults) == 0 {
		return rows, nil
	}
	var found []diagnostic.Diagnostic
	for _, fault := range faults {
		found = append(found, diagnostic.Of("T207", "method", method, "parameter", fault.Field, "actual", fault.Actual,
			"expected", fault.Expected, "fix", fault.Fix))
	}
	return nil, found
}

func schemaOf(rows *row.Rows) string {
	if rows == nil {
		return ""
	}
	return rows.Schema()
}

// rowForm is the form of messages that are rows.
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

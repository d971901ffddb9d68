// Package row converts structs of the program to rows of Spark and back. A row is a JSON object with all columns. The
// type of a column follows from the type of the struct's field. It is determined only once, when the application is
// declared.
package row

import (
	"cmp"
	"reflect"
	"regexp"
	"strings"
)

// Rows reads and writes rows of one struct type. It is safe for concurrent use.
type Rows struct{ form *form }

// Fault describes why a type of the program cannot be a row or a column.
type Fault struct {
	Field    string // TYPE.FIELD, or T for the type itself
	Actual   string
	Expected string
	Fix      string
}

// form is the column type for a Go type: it describes how values are read from JSON and written.
type form struct {
	sql      string // Spark's type
	goType   reflect.Type
	nullable bool
	read     func(f *form, r *reader, into reflect.Value) error
	write    func(f *form, out []byte, value reflect.Value) ([]byte, error)
	item     *form          // form of the target of a pointer, or of the elements of a slice or map
	columns  []column       // columns of a struct
	byName   map[string]int // index of each column by its name in lower case
	bits     int            // size of a number in bits
	digits   int            // number of digits of a DECIMAL
	scale    int            // number of digits after the point of a DECIMAL
}

type column struct {
	name  string
	index []int // path of the field in the struct, for embedded structs
	*form
}

// Of returns the reader and writer of rows for a struct type, or all reasons why the type cannot be a row.
func Of(t reflect.Type) (*Rows, []Fault) {
	if t.Kind() != reflect.Struct || t == timeType {
		return nil, []Fault{{"T", t.String(), "a struct whose fields are the columns", "pass a struct, e.g. type Order struct { User string }"}}
	}
	c := &compiler{within: map[reflect.Type]bool{}}
	made := c.form(t, "", cmp.Or(t.Name(), "T"))
	if made == nil {
		return nil, c.faults
	}
	return &Rows{made}, nil
}

// Schema returns the columns as Spark DDL, e.g. "user STRING NOT NULL, price DOUBLE NOT NULL".
func (r *Rows) Schema() string { return ddl(r.form.columns, " ") }

// Append appends the JSON of a row to out. value is the struct. After an error it returns out unchanged.
func (r *Rows) Append(out []byte, value reflect.Value) ([]byte, error) {
	made, err := r.form.write(r.form, out, value)
	if err != nil {
		return out, err
	}
	return made, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ddl lists columns as Spark DDL. between separates a name from its type: " " for a schema, ": " for a STRUCT.
func ddl(columns []column, between string) string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		name := c.name
		if !plainName.MatchString(name) {
			name = "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
		texts[i] = name + between + c.sql
		if !c.nullable {
			texts[i] += " NOT NULL"
		}
	}
	return strings.Join(texts, ", ")
}

// Error is the reason why a column of a row cannot be read or written.
type Error struct {
	Column string // such as user, items[0].price or prices["a"]; empty for the row itself
	Reason string
}

// Error returns the column and the reason.
func (e *Error) Error() string {
	if e.Column == "" {
		return "the row " + e.Reason
	}
	return "column " + e.Column + " " + e.Reason
}

// in returns a copy of the error with a part added in front of the column's path.
func (e *Error) in(part string) *Error {
	if e.Column != "" && e.Column[0] != '[' {
		part += "."
	}
	return &Error{part + e.Column, e.Reason}
}

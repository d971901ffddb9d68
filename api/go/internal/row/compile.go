package row

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()

	// ownForms are interfaces of types that define their own JSON form. Such a type has no equivalent in Spark.
	ownForms = []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
	decimalPattern = regexp.MustCompile(`^DECIMAL\( *(\d+) *, *(\d+) *\)$`)
)

const (
	ofAColumn      = "a type that a column can have"
	leaveOut       = "leave it out with the tag `json:\"-\"`"
	largestDecimal = 38
	defaultDecimal = "DECIMAL(38,18)"
)

// scalars maps the kinds of strings, bool and numbers to their column types.
var scalars = map[reflect.Kind]form{
	reflect.String:  {sql: "STRING", read: readText, write: writeText},
	reflect.Bool:    {sql: "BOOLEAN", read: readBool, write: writeBool},
	reflect.Int:     {sql: "BIGINT", bits: 64, read: readInt, write: writeInt},
	reflect.Int64:   {sql: "BIGINT", bits: 64, read: readInt, write: writeInt},
	reflect.Int32:   {sql: "INT", bits: 32, read: readInt, write: writeInt},
	reflect.Int16:   {sql: "SMALLINT", bits: 16, read: readInt, write: writeInt},
	reflect.Int8:    {sql: "TINYINT", bits: 8, read: readInt, write: writeInt},
	reflect.Float64: {sql: "DOUBLE", bits: 64, read: readFloat, write: writeFloat},
	reflect.Float32: {sql: "FLOAT", bits: 32, read: readFloat, write: writeFloat},
}

// times maps the tag `spark:"..."` of a field of type time.Time to the column type.
var times = map[string]form{
	"":              {sql: "TIMESTAMP", read: readTime, write: writeTime},
	"TIMESTAMP":     {sql: "TIMESTAMP", read: readTime, write: writeTime},
	"TIMESTAMP_NTZ": {sql: "TIMESTAMP_NTZ", read: readTime, write: writeTime},
	"DATE":          {sql: "DATE", read: readDate, write: writeDate},
}

// compiler makes column types for Go types, and collects the reasons why Go types cannot be columns.
type compiler struct {
	faults []Fault
	within map[reflect.Type]bool // structs that contain the current type
}

// wrong adds a fault and returns nil, because a faulty Go type has no column type.
func (c *compiler) wrong(at, actual, expected, fix string) *form {
	c.faults = append(c.faults, Fault{at, actual, expected, fix})
	return nil
}

// form makes the column type of a Go type. If there is none, it adds a fault and returns nil. The parameter tag is the
// value of the field's tag `spark:"..."`, or "", and chooses among Spark's types. The parameter at names the field in
// faults.
func (c *compiler) form(t reflect.Type, tag, at string) *form {
	made := form{goType: t}
	switch {
	case t == timeType:
		of, has := times[tag]
		if !has {
			return c.wrongTag(at, tag, "TIMESTAMP, TIMESTAMP_NTZ or DATE")
		}
		made = of
	case t == numberType:
		digits, scale, is := decimal(cmp.Or(tag, defaultDecimal))
		if !is {
			return c.wrongTag(at, tag, "DECIMAL(p,s) with p from 1 to 38 and s from 0 to p")
		}
		sql := fmt.Sprintf("DECIMAL(%d,%d)", digits, scale)
		made = form{sql: sql, read: readDecimal, write: writeDecimal, digits: digits, scale: scale}
	case t.Kind() == reflect.Pointer:
		return c.pointer(t, tag, at)
	case c.hasOwnForm(t, at):
		return nil
	default:
		of, isScalar := scalars[t.Kind()]
		if !isScalar {
			return c.compound(t, tag, at)
		}
		if tag != "" && tag != of.sql {
			return c.wrongTag(at, tag, of.sql+", the only one for "+t.String())
		}
		made = of
	}
	made.goType = t
	return &made
}

func (c *compiler) wrongTag(at, tag, expected string) *form {
	return c.wrong(at, fmt.Sprintf("tagged `spark:%q`", tag), expected, "correct the tag, or leave it out")
}

// decimal parses the SQL type DECIMAL(digits, scale). The last result is false for any other text.
func decimal(sql string) (digits, scale int, is bool) {
	found := decimalPattern.FindStringSubmatch(sql)
	if found == nil {
		return 0, 0, false
	}
	digits, err := strconv.Atoi(found[1])
	scale, errOfScale := strconv.Atoi(found[2])
	return digits, scale, err == nil && errOfScale == nil && digits >= 1 && digits <= largestDecimal && scale <= digits
}

func (c *compiler) pointer(t reflect.Type, tag, at string) *form {
	if t.Elem().Kind() == reflect.Pointer {
		return c.wrong(at, t.String(), ofAColumn, "use one pointer")
	}
	item := c.form(t.Elem(), tag, at)
	if item == nil {
		return nil
	}
	return &form{sql: item.sql, goType: t, nullable: true, item: item, read: readPointer, write: writePointer}
}

// hasOwnForm reports whether a type has methods for its own JSON form, and adds this as a fault.
func (c *compiler) hasOwnForm(t reflect.Type, at string) bool {
	for _, of := range ownForms {
		if t.Kind() == reflect.Interface || !t.Implements(of) && !reflect.PointerTo(t).Implements(of) {
			continue
		}
		fix := "use a plain type, such as string, and convert it in a step"
		if t.Kind() == reflect.Struct {
			fix = "use a struct without the method; give an embedded field that has it a name"
		}
		c.wrong(at, t.String()+" with a method "+of.Method(0).Name, ofAColumn, fix)
		return true
	}
	return false
}

// compound makes the column type of a slice, a map or a struct.
func (c *compiler) compound(t reflect.Type, tag, at string) *form {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		if tag != "" && tag != "BINARY" {
			return c.wrongTag(at, tag, "BINARY, the only one for "+t.String())
		}
		return &form{sql: "BINARY", goType: t, read: readBinary, write: writeBinary}
	case t.Kind() == reflect.Slice:
		return c.collection(t, "ARRAY<", tag, at, form{read: readArray, write: writeArray})
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		if c.hasOwnForm(t.Key(), at+"[key]") {
			return nil
		}
		return c.collection(t, "MAP<STRING, ", tag, at, form{read: readMap, write: writeMap})
	case t.Kind() == reflect.Struct && tag != "":
		return c.wrongTag(at, tag, "none: each field of "+t.String()+" has its own")
	case t.Kind() == reflect.Struct:
		return c.structure(t, at)
	}
	return c.wrong(at, t.String(), ofAColumn, remedy(t))
}

// collection completes the column type of a slice or map. opening begins the SQL type, such as ARRAY<. tag is the whole
// SQL type, e.g. ARRAY<DATE>, or empty.
func (c *compiler) collection(t reflect.Type, opening, tag, at string, made form) *form {
	if tag != "" {
		inner, is := strings.CutPrefix(tag, opening)
		inner, ends := strings.CutSuffix(inner, ">")
		if !is || !ends {
			return c.wrongTag(at, tag, opening+"...>")
		}
		tag = strings.TrimSpace(inner)
	}
	item := c.form(t.Elem(), tag, at+"[]")
	if item == nil {
		return nil
	}
	made.sql, made.goType, made.item = opening+item.sql+">", t, item
	return &made
}

// remedy returns advice for a type that a column cannot have.
func remedy(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "use int64"
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return "use int64, or json.Number with the tag `spark:\"DECIMAL(20,0)\"`"
	case reflect.Complex64, reflect.Complex128:
		return "use two fields of type float64"
	case reflect.Interface:
		return "use a struct with the fields that it has, or " + leaveOut
	case reflect.Map:
		return "use " + reflect.MapOf(reflect.TypeFor[string](), t.Elem()).String()
	case reflect.Array:
		return "use " + reflect.SliceOf(t.Elem()).String()
	}
	return leaveOut
}

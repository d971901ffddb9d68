package row

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// candidate is a field that becomes a column, unless another field with the same column name has precedence.
type candidate struct {
	field    reflect.StructField
	name     string
	at       string
	index    []int
	isTagged bool
}

// structure makes the column type of a struct.
func (c *compiler) structure(t reflect.Type, at string) *form {
	if c.within[t] {
		return c.wrong(at, t.String()+", which has itself in it", ofAColumn, "use a slice of structs without it, or "+leaveOut)
	}
	c.within[t] = true
	defer delete(c.within, t)
	before := len(c.faults)
	made := &form{goType: t, byName: map[string]int{}, read: readStruct, write: writeStruct}
	for _, each := range c.chosen(c.candidates(t, at, nil)) {
		tag := strings.ToUpper(strings.TrimSpace(each.field.Tag.Get("spark")))
		of := c.form(each.field.Type, tag, each.at)
		lower := strings.ToLower(each.name)
		if other, taken := made.byName[lower]; taken {
			c.wrong(each.at, fmt.Sprintf("column %q, which is %q for Spark", each.name, made.columns[other].name), "a name of its own",
				"give it another name with a tag, e.g. `json:\""+lower+"2\"`")
			continue
		}
		made.byName[lower] = len(made.columns)
		made.columns = append(made.columns, column{each.name, each.index, of})
	}
	if len(c.faults) > before {
		return nil
	}
	if len(made.columns) == 0 {
		return c.wrong(at, t.String()+", which has no fields", "a struct whose fields are the columns", "give it an exported field")
	}
	made.sql = "STRUCT<" + ddl(made.columns, ": ") + ">"
	return made
}

// candidates returns the fields of a struct. An embedded struct is replaced by its fields. index is the path to the
// struct from the outermost one.
func (c *compiler) candidates(t reflect.Type, at string, index []int) (all []candidate) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if tag == "-" || field.Name == "_" {
			continue
		}
		found := candidate{field, name, at + "." + field.Name, slices.Concat(index, []int{i}), name != ""}
		isEmbedded := field.Anonymous && name == ""
		switch {
		case isEmbedded && field.Type.Kind() == reflect.Struct:
			if !c.hasOwnForm(field.Type, found.at) {
				all = append(all, c.candidates(field.Type, found.at, found.index)...)
			}
		case isEmbedded && field.Type.Kind() == reflect.Pointer:
			c.wrong(found.at, "a pointer that is embedded", "a struct", "embed it without the pointer, or give the field a name")
		case !field.IsExported():
			c.wrong(found.at, "not exported", "an exported field", "export it, or "+leaveOut)
		default:
			if name == "" {
				found.name = field.Name
			}
			all = append(all, found)
		}
	}
	return all
}

// chosen returns the fields that become columns. As in encoding/json, the least nested of several fields with one name
// is chosen, and among equally nested fields the one with a tag. If this leaves several, chosen records a fault.
func (c *compiler) chosen(all []candidate) (columns []candidate) {
	byName := map[string][]candidate{}
	for _, each := range all {
		byName[each.name] = append(byName[each.name], each)
	}
	rank := func(f candidate) int {
		if f.isTagged {
			return 2 * len(f.index)
		}
		return 2*len(f.index) + 1
	}
	for _, each := range all {
		rivals := byName[each.name]
		least := slices.MinFunc(rivals, func(a, b candidate) int { return rank(a) - rank(b) })
		if rank(each) > rank(least) {
			continue
		}
		if !slices.Equal(each.index, least.index) {
			c.wrong(each.at, fmt.Sprintf("column %q, which %s is, too", each.name, least.at), "a name of its own", "give one of them another name with the tag json")
			continue
		}
		columns = append(columns, each)
	}
	return columns
}

package codec

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// coded has methods that serialize it as a text, in binary form and for gob.
type coded struct{ n int }

func (c coded) MarshalText() ([]byte, error)    { return fmt.Append(nil, c.n), nil }
func (c *coded) UnmarshalText(b []byte) error   { _, err := fmt.Sscan(string(b), &c.n); return err }
func (c coded) MarshalBinary() ([]byte, error)  { return c.MarshalText() }
func (c *coded) UnmarshalBinary(b []byte) error { return c.UnmarshalText(b) }
func (c coded) GobEncode() ([]byte, error)      { return c.MarshalText() }
func (c *coded) GobDecode(b []byte) error       { return c.UnmarshalText(b) }
func (c ownCoded) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d %d", c.n, c.N), nil }
func (c *ownCoded) UnmarshalText(b []byte) error {
	_, err := fmt.Sscan(string(b), &c.n, &c.N)
	return err
}
func (c ownCoded) GobEncode() ([]byte, error)    { return c.MarshalText() }
func (c *ownCoded) GobDecode(b []byte) error     { return c.UnmarshalText(b) }
func (c halfCoded) MarshalText() ([]byte, error) { return fmt.Append(nil, c.n), nil }
func (c halfCoded) GobEncode() ([]byte, error)   { return c.MarshalText() }

type (
	ownCoded struct {
		coded
		N int
	}
	halfCoded struct { // its own writes, that of the field reads
		coded
		N int
	}
	At struct {
		time.Time
		N int
	}
	deeper struct {
		At
		M int
	}
	alone   struct{ time.Time }
	guarded struct {
		sync.Mutex
		big.Int
	}
	reaching struct{ *big.Int }
	named    struct {
		Time time.Time
		N    int
	}
	unmarked struct {
		time.Time
		N int `json:"-"`
	}
)

// Go writes only the embedded field of a struct if this field has methods that serialize it. A struct with more fields
// is refused, and any other is read back as it was.
func TestAFieldBesideOneThatWritesTheStructIsNotLost(t *testing.T) {
	at := time.Unix(5, 6).UTC()
	for _, each := range []struct {
		value     any
		lost      string // empty: nothing
		isGobOnly bool
	}{
		{value: coded{3}}, {value: ownCoded{coded{3}, 4}}, {value: alone{at}}, {value: named{at, 4}},
		{value: halfCoded{coded{3}, 4}, lost: "codec.halfCoded has GobDecode of the field coded that it embeds, which leaves out N"},
		{value: At{at, 4}, lost: "codec.At has GobEncode of the field Time that it embeds, which leaves out N"},
		{value: deeper{At{at, 4}, 5}, lost: "codec.deeper has GobEncode of the field At that it embeds, which leaves out M"},
		{value: &guarded{Int: *big.NewInt(7)}},
		{value: reaching{big.NewInt(7)}, lost: "codec.reaching has GobEncode of the field Int that it embeds, which is a nil pointer when it is read"},
		{value: unmarked{at, 0}, lost: "codec.unmarked has GobEncode of the field Time that it embeds, which leaves out N", isGobOnly: true},
		{value: struct {
			coded
			N int
		}{}, lost: "leaves out N"},
	} {
		root := reflect.TypeOf(each.value)
		for form, check := range map[string]func(reflect.Type) error{
			"gob":  CheckType,
			"JSON": func(of reflect.Type) error { unreadable, _ := CheckJSON(pointedTo(of)); return unreadable },
		} {
			lost := each.lost
			if form == "JSON" {
				lost = strings.NewReplacer("GobEncode", "MarshalJSON", "GobDecode", "UnmarshalText").Replace(lost)
				if root == reflect.TypeFor[halfCoded]() || root.Name() == "" {
					lost = strings.NewReplacer("MarshalJSON", "MarshalText").Replace(lost)
				}
				if each.isGobOnly {
					lost = ""
				}
			}
			err := check(root)
			if of := check(reflect.PointerTo(pointedTo(root))); (of == nil) != (err == nil) {
				t.Errorf("%s of a pointer to %s: %v", form, root, of)
			}
			if lost == "" && err != nil || lost != "" && (err == nil || !strings.Contains(err.Error(), lost)) {
				t.Errorf("%s of %s: %v", form, root, err)
			}
			if err == nil {
				if back := again(t, form, each.value); !reflect.DeepEqual(each.value, back) {
					t.Errorf("%s: %#v became %#v", form, each.value, back)
				}
			}
		}
	}
}

// again writes a value in a form, and returns the value that is read back.
func again(t *testing.T, form string, value any) any {
	t.Helper()
	into := reflect.New(reflect.TypeOf(value))
	var data bytes.Buffer
	write, read := gob.NewEncoder(&data).Encode, gob.NewDecoder(&data).Decode
	if form == "JSON" {
		write, read = json.NewEncoder(&data).Encode, json.NewDecoder(&data).Decode
	}
	if err := write(value); err != nil {
		t.Fatal(form, err)
	}
	if err := read(into.Interface()); err != nil {
		t.Fatal(form, err)
	}
	return into.Elem().Interface()
}

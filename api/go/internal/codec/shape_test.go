package codec

import (
	"encoding/json"
	"math/big"
	"reflect"
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

// secret writes itself.
type secret struct{ text string }

func (s secret) GobEncode() ([]byte, error)    { return []byte(s.text), nil }
func (s *secret) GobDecode(data []byte) error  { s.text = string(data); return nil }
func (s secret) MarshalText() ([]byte, error)  { return []byte(s.text), nil }
func (s *secret) UnmarshalText(d []byte) error { s.text = string(d); return nil }

type endless []endless

func TestShapeNamesWhatTheBytesHold(t *testing.T) {
	gob := `{"Any":"interface {}?","At":"time.Time","Count":"int","For":"int","Next":"struct","Own":"[]codec.secret?",` +
		`"Prices":"map[string][]struct","Prices[][].Bid":"float","Prices[][].Note":"string","Sum":"big.Int"}`
	asJSON := `{"Any":"interface {}?","At":"time.Time","For":"int","Next":"struct","Own":"[]codec.secret?",` +
		`"Prices":"map[string][]struct","Prices[][].bid":"float","Sum":"big.Int","count":"int"}`
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
	if err := CheckType(reflect.TypeFor[marked]()); err != nil {
		t.Errorf("found %v", err)
	}
}

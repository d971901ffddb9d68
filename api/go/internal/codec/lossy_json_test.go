package codec

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type (
	Root      struct{ N int }
	LeftSide  struct{ Root }
	RightSide struct{ Root }
	shadowed  struct {
		Root
		N int
	}
	doubled struct {
		LeftSide
		RightSide
	}
	retagged struct {
		Root
		Other int `json:"N"`
	}
	fielded struct {
		Root `json:"base"`
		N    int
	}
	parted struct {
		Root
		Other int `json:"other"`
	}
	Ring struct {
		*Ring
		N int
	}
	spoken struct {
		Text  string
		Parts map[string][]string
		At    time.Time
	}
	relayed struct{ Raw json.RawMessage }
)

// TestHiddenFieldsAreMissing: JSON leaves out a field of an embedded struct if a field with the same name hides it.
func TestHiddenFieldsAreMissing(t *testing.T) {
	for _, test := range []struct {
		value                  any
		isReadable, isComplete bool
	}{
		{shadowed{}, true, false}, {doubled{}, false, true}, {retagged{}, true, false}, {fielded{}, true, true}, {parted{}, true, true},
		{LeftSide{}, true, true}, {Ring{}, true, true},
	} {
		unreadable, incomplete := CheckJSON(reflect.TypeOf(test.value))
		if (unreadable == nil) != test.isReadable || (incomplete == nil) != test.isComplete {
			t.Errorf("%T: %v, %v", test.value, unreadable, incomplete)
		}
	}
}

// TestTextsComeBackOrAreRefused draws texts. Wherever a text is, it is read back as it was, or is refused.
func TestTextsComeBackOrAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "é", "\ufffd", `\`, `\ufffd`, `\\ufffd`, "\xff", "\xc3", "\n", `"`}
	for range 5000 {
		var text strings.Builder
		for range random.IntN(4) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		for _, value := range []spoken{{Text: text.String()}, {Parts: map[string][]string{"x": {text.String()}}}, {Parts: map[string][]string{text.String(): nil}}} {
			data, err := MarshalJSON(&value)
			if utf8.ValidString(text.String()) != (err == nil) {
				t.Fatalf("%q: %s, %v", text.String(), data, err)
			}
			if _, coded := appendJSON(nil, value); (coded == nil) != (err == nil) {
				t.Fatalf("%q in codec json: %v", text.String(), coded)
			}
		}
	}
}

// TestWrittenJSONIsRelayed: JSON that another program has written may have the escape of U+FFFD, which is no fault.
func TestWrittenJSONIsRelayed(t *testing.T) {
	if data, err := MarshalJSON(relayed{json.RawMessage(`"\ufffd"`)}); err != nil || string(data) != `{"Raw":"\ufffd"}` {
		t.Errorf("%s, %v", data, err)
	}
}

func TestANilIntegerIsNull(t *testing.T) {
	data, err := appendJSON(nil, map[string]any{"n": (*big.Int)(nil)})
	if err != nil || string(data) != `{"n":null}` {
		t.Errorf("%s, %v", data, err)
	}
}

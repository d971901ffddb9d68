package codec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestHalvesOfSurrogatePairsAreRefused draws texts, and compares the result with that of package utf16.
func TestHalvesOfSurrogatePairsAreRefused(t *testing.T) {
	units := []uint16{'a', '\\', '"', 0xD7FF, 0xD800, 0xD83D, 0xDBFF, 0xDC00, 0xDE00, 0xDFFF, 0xE000}
	random, refused := rand.New(rand.NewPCG(11, 1)), 0
	for range 20_000 {
		drawn := make([]uint16, random.IntN(6))
		var text strings.Builder
		for i := range drawn {
			drawn[i] = units[random.IntN(len(units))]
			if drawn[i] == '\\' && random.IntN(2) == 0 {
				text.WriteString(`\\`)
			} else {
				fmt.Fprintf(&text, `\u%04x`, drawn[i])
			}
		}
		data := `["` + text.String() + `", {"` + text.String() + `": "\\ud800"}]`
		expected := string(utf16.Decode(drawn))
		value, err := decodeJSON([]byte(data))
		if isWhole := slices.Equal(utf16.Encode(utf16.Decode(drawn)), drawn); !isWhole {
			refused++
			if err == nil {
				t.Fatalf("%s was read as %q", data, value)
			}
			continue
		}
		if err != nil || value.([]any)[0] != expected || value.([]any)[1].(map[string]any)[expected] != `\ud800` {
			t.Fatalf("%s: %q, %v; expected %q", data, value, err, expected)
		}
	}
	if refused < 1000 {
		t.Errorf("only %d texts were refused", refused)
	}
}

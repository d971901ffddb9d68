package codec_test

import (
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
)

type closedType struct {
	Name   string
	Counts map[string]int
	Nested []struct{ A, B int }
}

type openType struct {
	Any any
}

type inAny struct{ N int }

// ownForm has a method that reads it. Decoder.Pass must not call this method.
type ownForm struct{ N int }

var isPassing, ranInPassing = false, false

func (o ownForm) GobEncode() ([]byte, error) { return []byte{byte(o.N), byte(o.N >> 8)}, nil }

func (o *ownForm) GobDecode(data []byte) error {
	ranInPassing = ranInPassing || isPassing
	o.N = int(data[0]) | int(data[1])<<8
	return nil
}

func isOpen(value any) bool { return strings.Contains(fmt.Sprintf("%T", value), "openType") }

// pass calls Decoder.Pass for a written value. It returns the result, or the value itself if Pass returns nil.
func pass(t *testing.T, decoder *codec.Decoder, written []byte, value any) any {
	t.Helper()
	isPassing, ranInPassing = true, false
	found := decoder.Pass(written)
	isPassing = false
	if ranInPassing && !isOpen(value) {
		t.Fatalf("user code read %v, which was passed over", value)
	}
	if found == nil {
		return value
	}
	return found
}

// TestValuesAreReadAfterOthersWerePassedOver reads the values of frames. Some of them are passed over, and describe the
// types of later ones nevertheless.
func TestValuesAreReadAfterOthersWerePassedOver(t *testing.T) {
	for _, value := range []any{closedType{}, openType{}, inAny{}, ownForm{}} {
		wa.RegisterType(value)
		gob.Register(value)
	}
	random := rand.New(rand.NewPCG(1, 2))
	encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
	for range 600 {
		encoder.Reset()
		decoder.Reset()
		for range random.IntN(6) {
			value := drawn(random)
			written, err := encoder.Append(nil, value)
			if err != nil {
				t.Fatal(err)
			}
			found := any(nil)
			if random.IntN(3) == 0 {
				found = pass(t, decoder, written, value)
			} else {
				found, err = decoder.Decode(codec.Native, written)
			}
			if err != nil || !reflect.DeepEqual(found, value) {
				t.Fatalf("%v, %v; want %v", found, err, value)
			}
		}
	}
}

func drawn(random *rand.Rand) any {
	n := random.IntN(1000)
	switch random.IntN(7) {
	case 0:
		return n
	case 4:
		return ownForm{n}
	case 5:
		return openType{ownForm{n}}
	case 1:
		return inAny{n}
	case 2:
		return openType{inAny{n}}
	case 3:
		return &openType{openType{inAny{n}}}
	}
	return &closedType{"x", map[string]int{"a": n}, []struct{ A, B int }{{n, 1}}}
}

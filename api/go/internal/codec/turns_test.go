package codec_test

import (
	"encoding/gob"
	"math/rand/v2"
	"reflect"
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

// Frames of values of several types, some described once in a frame, are read in turns: each goes on where it was.
func TestFramesAreReadInTurns(t *testing.T) {
	for _, value := range []any{closedType{}, openType{}, inAny{}} {
		wa.RegisterType(value)
		gob.Register(value)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		encoder, decoder := codec.NewEncoder(), codec.NewDecoder()
		frames, wanted := make([][][]byte, 3), make([][]any, 3)
		for f := range frames {
			encoder.Reset()
			for range random.IntN(6) {
				value := drawn(random)
				written, err := encoder.Append(nil, value)
				if err != nil {
					t.Fatal(err)
				}
				frames[f], wanted[f] = append(frames[f], written), append(wanted[f], value)
			}
		}
		types, next := make([]codec.Types, 3), [3]int{}
		for left := len(frames[0]) + len(frames[1]) + len(frames[2]); left > 0; {
			f := random.IntN(3)
			if next[f] == len(frames[f]) {
				continue
			}
			decoder.Exchange(&types[f])
			found, err := decoder.Decode(codec.Native, frames[f][next[f]])
			decoder.Exchange(&types[f])
			if err != nil || !reflect.DeepEqual(found, wanted[f][next[f]]) {
				t.Fatalf("frame %d, value %d: %v, %v; want %v", f, next[f], found, err, wanted[f][next[f]])
			}
			next[f]++
			left--
		}
	}
}

func drawn(random *rand.Rand) any {
	n := random.IntN(1000)
	switch random.IntN(5) {
	case 0:
		return n
	case 1:
		return inAny{n}
	case 2:
		return openType{inAny{n}}
	case 3:
		return &openType{openType{inAny{n}}}
	}
	return &closedType{"x", map[string]int{"a": n}, []struct{ A, B int }{{n, 1}}}
}

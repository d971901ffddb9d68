package shown_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"wallarooapi/internal/shown"
)

type account struct {
	Owner  string
	sums   map[string]int
	parent *account
}

type loud struct{}

func (loud) MarshalJSON() ([]byte, error) { panic("no") }

type refusing struct{ A int }

func (refusing) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func TestAValueIsToldAsJSON(t *testing.T) {
	loop := &account{Owner: "me"}
	loop.parent = loop
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{int64(-3), `-3`},
		{uint64(math.MaxUint64), `18446744073709551615`},
		{float32(0.1), `0.1`},
		{math.Inf(1), `"+Inf"`},
		{"é\"", `"é\""`},
		{[]byte("text"), `"text"`},
		{[2]byte{0, 255}, `"0x00ff"`},
		{[]byte(nil), `null`},
		{&account{Owner: "Ann", sums: map[string]int{"b": 2, "a": 1}}, `{"Owner":"Ann","parent":null,"sums":{"a":1,"b":2}}`},
		{map[int]string{2: "b", 1: "a"}, `{"1":"a","2":"b"}`},
		{map[any]string{1: "a", "1": "b"}, `[["1","b"],[1,"a"]]`},
		{map[[2]int]bool{{1, 2}: true}, `{"[1,2]":true}`},
		{struct{}{}, `{}`},
		{make(chan int), `"chan int"`},
		{func() {}, `"func()"`},
		{complex(1, 2), `"(1+2i)"`},
		{time.Unix(0, 0).UTC(), `"1970-01-01T00:00:00Z"`},
		{wrapperspb.String("x"), `"x"`},
		{loud{}, `"shown_test.loud: no"`},
		{refusing{4}, `{"A":4}`},
	} {
		var got, want any
		text := shown.JSON(c.value)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Errorf("%T: %s: %v", c.value, text, err)
			continue
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if reflect.TypeOf(c.value) != nil && reflect.TypeOf(c.value).Kind() == reflect.Map && len(c.want) > 0 && c.want[0] == '[' {
			if list, ok := got.([]any); !ok || len(list) != 2 {
				t.Errorf("%v: %s; want pairs", c.value, text)
			}
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%T: %s; want %s", c.value, text, c.want)
		}
	}
	if text := shown.JSON(loop); !json.Valid(text) || len(text) > 10_000 {
		t.Errorf("a loop is %d bytes", len(text))
	}
}

// TestDrawnValuesAreWhatJSONSays: values without special cases are shown as encoding/json writes them.
func TestDrawnValuesAreWhatJSONSays(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 500 {
		value := drawn(random, 3)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown.JSON(value); string(got) != string(want) {
			t.Fatalf("%s; want %s", got, want)
		}
	}
}

func drawn(random *rand.Rand, depth int) any {
	switch n := random.Intn(7); {
	case n == 0:
		return nil
	case n == 1:
		return random.Int63() - random.Int63()
	case n == 2:
		return random.NormFloat64()
	case n == 3 || depth == 0:
		return string([]rune{rune(random.Intn(0x500) + 32), rune(random.Intn(100) + 32)})
	case n == 4:
		list := make([]any, random.Intn(4))
		for i := range list {
			list[i] = drawn(random, depth-1)
		}
		return list
	case n == 5:
		made := map[string]any{}
		for range random.Intn(4) {
			made[string(rune(random.Intn(26)+97))] = drawn(random, depth-1)
		}
		return made
	}
	return random.Intn(2) == 0
}

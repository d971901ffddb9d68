package codec

import (
	"math"
	"reflect"
	"testing"
	"time"

	wa "wallarooapi"
)

type byTime struct {
	At     map[time.Time]*int
	Points map[complex128]*int
	Means  map[float64]struct{ Sum float64 }
}

func init() { wa.RegisterType(byTime{}) }

// TestNilElementsBelongToTheirKeys has keys whose order differs before gob has written and after it has read them: gob
// does not write the monotonic clock of time.Now.
func TestNilElementsBelongToTheirKeys(t *testing.T) {
	for range 20 {
		five := 5
		now := time.Now()
		whole := now.Add(time.Second - time.Duration(now.Nanosecond()))
		value := byTime{
			At:     map[time.Time]*int{whole.Add(-time.Millisecond): nil, whole.Add(time.Millisecond): &five},
			Points: map[complex128]*int{1 + 2i: nil, 1 + 1i: &five, 2: nil},
		}
		got := copied(t, NewEncoder(), NewDecoder(), value).(byTime)
		for at, want := range value.At {
			for key, each := range got.At {
				if key.Equal(at) && (each == nil) != (want == nil) {
					t.Fatalf("%v has %v, want %v", at, each, want)
				}
			}
		}
		if !reflect.DeepEqual(got.Points, value.Points) {
			t.Fatalf("%v came back as %v", value.Points, got.Points)
		}
	}
}

func TestAKeyThatIsNoNumberIsKept(t *testing.T) {
	value := byTime{Means: map[float64]struct{ Sum float64 }{math.NaN(): {1}, 2: {math.Copysign(0, -1)}}}
	got := copied(t, NewEncoder(), NewDecoder(), value).(byTime)
	if len(got.Means) != 2 || !math.Signbit(got.Means[2].Sum) {
		t.Errorf("%v came back as %v", value.Means, got.Means)
	}
}

type shownByItself struct{ Name string }

func (shownByItself) MarshalJSON() ([]byte, error) {
	panic("a skipped message is shown by its own code")
}

func TestATypeThatShowsItselfNeedsCode(t *testing.T) {
	holder := reflect.TypeFor[struct{ In []shownByItself }]()
	if NeedsNoCode(holder) || !ReadsWithoutCode(holder) {
		t.Errorf("needs no code: %v, want false; reads without code: %v, want true", NeedsNoCode(holder), ReadsWithoutCode(holder))
	}
}

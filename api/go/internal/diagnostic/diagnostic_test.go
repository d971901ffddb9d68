package diagnostic

import "testing"

func TestWhatACommandReportsIsFoundByItsKind(t *testing.T) {
	for output, want := range map[string]bool{
		"R610 checkpoint c is in use by another run (process 7)\n  fix: wait": true,
		"starting\nR614 no room\nR610 c is in use":                            true,
		`[{"code": "R610", "message": "c is in use"}]`:                        true,
		"R611 the query stopped; R6100 and XR610 are no codes":                false,
		`R733 visit "v": nothing runs there`:                                  false,
		"":                                                                    false,
	} {
		if Reports(output, InUse) != want {
			t.Errorf("%q: %v", output, !want)
		}
	}
	if !Reports(`[{"code": "R733"}]`, NoVisit) || Reports("R610 c", NoVisit) {
		t.Error("visits that no run takes have a kind of their own")
	}
}

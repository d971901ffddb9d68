package codec

import (
	"encoding/hex"
	"testing"

	"wallarooapi/internal/recordpb"
	"wallarooapi/internal/testdata/vector"
)

// TestTableStateVectors: the runtime writes the values of a table as states, and Go reads them as states of a group.
func TestTableStateVectors(t *testing.T) {
	type file struct {
		States []struct{ Value, Go string } `json:"table_states"`
	}
	var right file
	var wrong struct{ Goka file }
	vector.Read(t, "goka.json", &right)
	vector.Read(t, "selftest.json", &wrong)
	if len(right.States) == 0 || len(wrong.Goka.States) == 0 {
		t.Fatal("there are no cases")
	}
	holds := func(value, data string) bool {
		bytes, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		found, err := NewDecoder().Decode(Native, bytes)
		state, isState := found.(*recordpb.GroupState)
		return err == nil && isState && state.Value != nil && hex.EncodeToString(state.Value) == value && len(state.Joined) == 0
	}
	for _, c := range right.States {
		if !holds(c.Value, c.Go) {
			t.Errorf("%s is not read as the state of value %s", c.Go, c.Value)
		}
	}
	for _, c := range wrong.Goka.States {
		if holds(c.Value, c.Go) {
			t.Errorf("%s is read as the state of value %s", c.Go, c.Value)
		}
	}
}

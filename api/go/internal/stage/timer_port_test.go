package stage_test

import (
	"reflect"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
)

// TestTimersGoOnWhenTheirStepHasAnotherPort: a changed program has other steps before the timed ones.
func TestTimersGoOnWhenTheirStepHasAnotherPort(t *testing.T) {
	defer example.SetSerialize(false)()
	wa.RegisterType(&timedValues{})
	after, tick, gives := int64(5), int64(5), behaviour{Gives: true}
	for shift := range 3 {
		c := &timerCase{Steps: []map[string]behaviour{{"x": gives}, {"y": gives, "z": gives}}, Time: "ingest"}
		for i, set := range []struct {
			step int
			name string
		}{{0, "x"}, {0, "x"}, {1, "z"}, {1, "y"}} {
			ops := []timerOp{{Set: set.name, After: &after}}
			c.Events = append(c.Events, timerEvent{Sequence: uint64(i), Key: "ab"[i%2 : i%2+1], Value: int64(i), Step: set.step, Ops: ops})
		}
		c.Events = append(c.Events, timerEvent{Sequence: 9, Tick: &tick})
		want := c.once(t).outputs
		x := c.executor(t, false)
		x.Begin(0, nil)
		call := x.NewCall(state.NewBucket(), nil)
		if err := call.RunPart(c.frames(t, 0, 4)...); err != nil {
			t.Fatal(err)
		}
		first, changes, _, err := call.Finish(false)
		if err != nil {
			t.Fatal(err)
		}
		var r timerResult
		r.take(t, first)
		c.shift = shift
		x = c.executor(t, false)
		loader := x.NewLoader()
		for _, entry := range changes {
			if err := loader.Load(entry); err != nil {
				t.Fatal(err)
			}
		}
		x.Begin(0, nil)
		call = x.NewCall(loader.Bucket(), nil)
		if err := call.RunPart(c.frames(t, 4, 5)...); err != nil {
			t.Fatal(err)
		}
		last, _, _, err := call.Finish(false)
		if err != nil {
			t.Fatal(err)
		}
		if r.take(t, last); !reflect.DeepEqual(r.outputs, want) {
			t.Errorf("shift %d: got %q; want %q", shift, r.outputs, want)
		}
	}
}

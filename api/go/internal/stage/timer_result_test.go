package stage_test

import (
	"fmt"
	"slices"
	"testing"

	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
)

// timerResult has the outputs, dead letters, states and counts of a case.
type timerResult struct {
	outputs, letters, keys []string
	expired, fired         uint64
	visited                []uint64 // keys of each visit
}

func (r *timerResult) take(t testing.TB, outputs []stage.OutputFrame) {
	t.Helper()
	for _, output := range outputs {
		var f frame.Frame
		if _, err := f.Read(output.Frame); err != nil {
			t.Fatal(err)
		}
		for i, value := range values(t, output.Frame) {
			if output.Port == frame.DeadLetterPort {
				l := letterOf(t, value)
				timer := ""
				if l.GetEncoding() == frame.Plain {
					timer = string(l.GetInput())
				}
				r.letters = append(r.letters, fmt.Sprint(l.GetSequence(), " ", string(l.GetKey()), " ", l.GetPath(), " ", l.GetCode(), " ", timer, " ", l.GetTimestampMs()))
				continue
			}
			r.outputs = append(r.outputs, fmt.Sprint(f.SequenceOf(i), " ", string(f.Keys[f.KeyIndexes.At(i)]), " ", f.TimestampOf(i), " ", string(value[1:])))
		}
	}
}

func (r *timerResult) count(x *stage.Executor) {
	for _, visited := range x.Visited() {
		r.visited = append(r.visited, visited.GetKeys())
	}
	for _, count := range x.Counts() {
		r.expired += count.GetMore()["expired"]
		r.fired += count.GetMore()["timers_fired"]
	}
}

func (r *timerResult) takeKeys(bucket *state.Bucket) {
	r.keys = nil
	for entry := range bucket.Table(1).Entries() {
		timers := []string{}
		for entry.Time != nil && len(timers) < len(entry.Time.Timers) {
			timer := entry.Time.Timers[len(timers)]
			timers = append(timers, fmt.Sprint(timer.Name, " ", timer.Due))
		}
		r.keys = append(r.keys, fmt.Sprint(entry.Key, " ", entry.Value.(*timedValues).Values, " ", timers))
	}
	slices.Sort(r.keys)
}

func (c *timerCase) want() (r timerResult) {
	for _, o := range c.Outputs {
		r.outputs = append(r.outputs, fmt.Sprint(o.Sequence, " ", o.Key, " ", o.Time, " ", timedStep{c, o.Step}.give(o.Timer, o.Now, o.Values)))
	}
	for _, l := range c.DeadLetters {
		r.letters = append(r.letters, fmt.Sprint(l.Sequence, " ", l.Key, " ", c.path(l.Step), " ", l.Code, " ", l.Timer, " ", l.Time))
	}
	for _, k := range c.Keys {
		timers := []string{}
		for _, timer := range k.Timers {
			timers = append(timers, fmt.Sprint(timer[0], " ", int64(timer[1].(float64))))
		}
		slices.Sort(timers)
		r.keys = append(r.keys, fmt.Sprint(k.Key, " ", k.Values, " ", timers))
	}
	slices.Sort(r.keys)
	r.expired, r.fired = c.Expired, c.TimersFired
	for _, keys := range c.Visited {
		r.visited = append(r.visited, slices.Repeat([]uint64{keys}, len(c.Steps))...) // each step takes the visit
	}
	return r
}

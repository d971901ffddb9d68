package stage_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/testdata/example"
)

// plainTimer is a timer in the reference, with its due time.
type plainTimer struct {
	step int
	name string
	due  int64
}

// plainKey is the state of a key in the reference.
type plainKey struct {
	values       []int64
	time, silent *int64
	timers       []plainTimer
}

func (k plainKey) clone() plainKey {
	return plainKey{slices.Clone(k.values), k.time, k.silent, slices.Clone(k.timers)}
}

// plainTimes is a simple reference of timers and TTL after SPECIFICATION.md, section 8. It checks all keys at each
// tick.
type plainTimes struct {
	c    *timerCase
	keys map[string]plainKey
	got  timerResult
}

func (p *plainTimes) run() timerResult {
	p.keys = map[string]plainKey{}
	for key, values := range p.c.Before {
		p.keys[key] = plainKey{values: slices.Clone(values)}
	}
	for _, event := range p.c.Events {
		if event.Tick == nil {
			p.message(event)
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(p.keys)) {
			p.tick(event, key)
		}
		if event.Visit {
			p.got.visited = append(p.got.visited, slices.Repeat([]uint64{uint64(len(p.keys))}, len(p.c.Steps))...)
		}
	}
	for key, k := range p.keys {
		timers := []string{}
		for _, timer := range k.timers {
			timers = append(timers, fmt.Sprint(timer.name, " ", timer.due))
		}
		slices.Sort(timers)
		p.got.keys = append(p.got.keys, fmt.Sprint(key, " ", k.values, " ", timers))
	}
	slices.Sort(p.got.keys)
	return p.got
}

func (p *plainTimes) message(event timerEvent) {
	p.wake(event.Key, event.Time, event.Sequence, event.Time)
	k := p.keys[event.Key].clone()
	code := p.apply(&k, event.Step, event.Ops, event.Time)
	if code == "" && event.Value == -1 {
		code = "C501"
	}
	if code != "" {
		p.got.letters = append(p.got.letters, fmt.Sprint(event.Sequence, " ", event.Key, " ", p.c.path(event.Step), " ", code, "  ", event.Time))
		return
	}
	k.values, k.silent = append(k.values, event.Value), nil
	if k.time == nil || *k.time < event.Time {
		k.time = &event.Time
	}
	p.keys[event.Key] = k
	p.give(event.Sequence, event.Key, event.Time, event.Step, "", event.Time)
}

func (p *plainTimes) tick(event timerEvent, key string) {
	k, now := p.keys[key], *event.Tick
	if k.time == nil {
		k.time = &now
	}
	until := now
	if p.c.Time == "event" {
		if k.silent == nil || *k.silent > now {
			k.silent = &now
		}
		until = *k.time + now - *k.silent
	}
	p.keys[key] = k
	p.wake(key, until, event.Sequence, now)
}

// order compares timers by their due times, and then by their names.
func (t plainTimer) order(other plainTimer) int {
	return cmp.Or(cmp.Compare(t.due, other.due), cmp.Compare(t.name, other.name))
}

func (p *plainTimes) wake(key string, until int64, sequence uint64, cause int64) {
	last := plainTimer{-1, "", math.MinInt64}
	for range 10_000 {
		k, is := p.keys[key]
		if !is {
			return
		}
		due := slices.Clone(k.timers)
		if p.c.TTLMs > 0 && k.time != nil {
			due = append(due, plainTimer{1000, "\uffff", *k.time + p.c.TTLMs})
		}
		due = slices.DeleteFunc(due, func(t plainTimer) bool { return t.due > until || t.order(last) <= 0 })
		if len(due) == 0 {
			return
		}
		last = slices.MinFunc(due, plainTimer.order)
		if last.step == 1000 {
			delete(p.keys, key)
			p.got.expired++
			return
		}
		p.fire(key, last, sequence, cause)
	}
}

func (p *plainTimes) fire(key string, timer plainTimer, sequence uint64, cause int64) {
	without := p.keys[key].clone()
	without.timers = slices.DeleteFunc(without.timers, func(t plainTimer) bool { return t == timer })
	p.keys[key] = without
	p.got.fired++
	does, k := p.c.Steps[timer.step][timer.name], without.clone()
	at := cause
	if p.c.Time == "event" {
		at = timer.due
	}
	code := p.apply(&k, timer.step, does.Ops, timer.due)
	if code == "" && does.Fails {
		code = "C501"
	}
	if code != "" {
		p.got.letters = append(p.got.letters, fmt.Sprint(sequence, " ", key, " ", p.c.path(timer.step), " ", code, " ", timer.name, " ", at))
		return
	}
	k.values = append(k.values, does.Appends...)
	p.keys[key] = k
	if does.Gives {
		if p.c.Time == "event" {
			cause = timer.due
		}
		p.give(sequence, key, cause, timer.step, timer.name, timer.due)
	}
	if does.Deletes {
		delete(p.keys, key)
	}
}

func (p *plainTimes) apply(k *plainKey, step int, ops []timerOp, now int64) (code string) {
	for _, op := range ops {
		name := op.Set + op.Delete
		if _, is := p.c.Steps[step][name]; !is || op.After != nil && *op.After < 0 {
			return "C529"
		}
		k.timers = slices.DeleteFunc(k.timers, func(t plainTimer) bool { return t.name == name })
		switch {
		case op.After != nil:
			k.timers = append(k.timers, plainTimer{step, name, now + *op.After})
		case op.At != nil:
			k.timers = append(k.timers, plainTimer{step, name, *op.At})
		}
	}
	return ""
}

func (p *plainTimes) give(sequence uint64, key string, time int64, step int, timer string, now int64) {
	p.got.outputs = append(p.got.outputs, fmt.Sprint(sequence, " ", key, " ", time, " ", timedStep{p.c, step}.give(timer, now, p.keys[key].values)))
}

// drawnTimes draws a case. Sometimes clocks and times of messages go back or far ahead, timers set and delete timers,
// and functions fail.
func drawnTimes(draw *rand.Rand) *timerCase {
	c := &timerCase{Name: "drawn", Time: []string{"ingest", "event"}[draw.IntN(2)], Before: map[string][]int64{}}
	if draw.IntN(2) == 0 {
		c.TTLMs = 1 + draw.Int64N(40)
	}
	for step := range 1 + draw.IntN(3) {
		timers := map[string]behaviour{}
		for i := range draw.IntN(3) {
			timers[string(rune('a'+2*step+i))] = behaviour{Ops: drawnOps(draw, step, 2), Gives: draw.IntN(4) > 0, Deletes: draw.IntN(6) == 0,
				Fails: draw.IntN(6) == 0, Appends: []int64{int64(100 * step)}[:draw.IntN(2)]}
		}
		c.Steps = append(c.Steps, timers)
	}
	if c.TTLMs == 0 && len(slices.Collect(maps.Keys(c.Steps[0]))) == 0 {
		c.Steps[0]["a"] = behaviour{Gives: true}
	}
	for _, key := range []string{"a", "b"}[:draw.IntN(3)] {
		c.Before[key] = []int64{7}
	}
	clock, data := int64(1000), int64(0)
	for i := range draw.IntN(25) {
		clock += draw.Int64N(15)
		data += draw.Int64N(15)
		switch draw.IntN(10) {
		case 0:
			clock -= 60
		case 1:
			clock, data = clock+draw.Int64N(400), data+draw.Int64N(400)
		}
		event := timerEvent{Sequence: uint64(10 + i), Key: []string{"a", "b", "é"}[draw.IntN(3)], Value: int64(i), Step: draw.IntN(len(c.Steps))}
		switch {
		case draw.IntN(2) == 0:
			tick := clock
			event = timerEvent{Sequence: event.Sequence, Tick: &tick, Visit: draw.IntN(4) == 0}
		case c.Time == "ingest":
			event.Time = clock
		default:
			event.Time = data - draw.Int64N(20)
		}
		if event.Tick == nil {
			event.Ops = drawnOps(draw, event.Step, 3)
		}
		if draw.IntN(8) == 0 {
			event.Value = -1
		}
		c.Events = append(c.Events, event)
	}
	return c
}

func drawnOps(draw *rand.Rand, step, most int) (ops []timerOp) {
	for range draw.IntN(most + 1) {
		op, name := timerOp{}, string(rune('a'+2*step+draw.IntN(2)))
		time := draw.Int64N(50)
		switch draw.IntN(6) {
		case 0:
			op.Delete = name
		case 1:
			op.Set, op.At = name, &time
		case 2:
			time += 1000
			op.Set, op.At = name, &time
		default:
			op.Set, op.After = name, &time
		}
		ops = append(ops, op)
	}
	return ops
}

// once runs the events in one call.
func (c *timerCase) once(t testing.TB) (r timerResult) {
	t.Helper()
	x := c.executor(t, false)
	outputs, changes, _ := windowCall(t, x, c.log(t), true, c.frames(t, 0, len(c.Events))...)
	r.take(t, outputs)
	r.count(x)
	_, _, bucket := windowCall(t, x, changes, false)
	r.takeKeys(bucket)
	return r
}

func checkDrawnTimes(t *testing.T, seed uint64) {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 1))
	c := drawnTimes(draw)
	want := (&plainTimes{c: c}).run()
	if got := c.once(t); !reflect.DeepEqual(got, want) {
		t.Fatalf("seed %d, in one call: %q; want %q; %+v", seed, got, want, c)
	}
	for range 3 {
		if got := c.cut(t, draw); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, cut: %q; want %q; %+v", seed, got, want, c)
		}
	}
}

func TestDrawnTimesAreThoseOfAPlainReference(t *testing.T) {
	defer example.SetSerialize(false)()
	wa.RegisterType(&timedValues{})
	for seed := range uint64(300) {
		checkDrawnTimes(t, seed)
	}
}

func FuzzTimes(f *testing.F) {
	defer example.SetSerialize(false)()
	wa.RegisterType(&timedValues{})
	f.Add(uint64(1))
	f.Fuzz(checkDrawnTimes)
}

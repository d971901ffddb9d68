package stage

import (
	"fmt"
	"slices"
	"time"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/state"
	"wallarooapi/internal/timing"
	pb "wallarooapi/internal/workerpb"
)

// timed describes a state of which at least one step has timers or a TTL. All steps of the state share it.
type timed struct {
	rules  timing.StateRules
	port   uint16
	steps  []*node
	owners map[string]*node // steps by the names of their timers
}

// IsTimed reports whether a node has timers or a TTL.
func IsTimed(d *pb.Node) bool { return d.GetTtlMs() > 0 || len(d.GetTimers()) > 0 }

// findTimed finds the states of which a step has timers or a TTL. Every step of such a state then updates the times of
// keys and runs due timers.
func (x *Executor) findTimed(description *pb.Stage) error {
	for i, d := range description.GetNodes() {
		n, port := x.nodes[i], uint16(d.GetStatePort())
		if n.stateful == nil || !IsTimed(d) {
			continue
		}
		for _, name := range d.GetTimers() {
			if !slices.Contains(n.step.Timers, name) {
				return &Failure{Code: "W403", Reason: fmt.Sprintf("the step at %s has no timer %q", n.path, name)}
			}
		}
		n.stateful.ticks, n.stateful.timers = true, d.GetTimers()
		if x.timedOf(port) == nil {
			rules := timing.StateRules{TTL: int64(d.GetTtlMs()), IsEvent: d.GetEventTime(), Waits: d.GetEventTime() && !d.GetWatermarks()}
			x.timed = append(x.timed, &timed{port: port, rules: rules, owners: map[string]*node{}})
		}
	}
	for _, n := range x.nodes {
		if n.stateful == nil || x.timedOf(n.stateful.port) == nil {
			continue
		}
		t := x.timedOf(n.stateful.port)
		n.stateful.timed, t.steps = t, append(t.steps, n)
		for _, name := range n.stateful.timers {
			t.owners[name] = n
		}
	}
	return nil
}

// timedOf returns the description of a state, given by its port in state logs. It returns nil if the state has neither
// timers nor a TTL.
func (x *Executor) timedOf(port uint16) *timed {
	for _, t := range x.timed {
		if t.port == port {
			return t
		}
	}
	return nil
}

// readTime splits the bytes that a state log has for a key: it returns the key's time, and the state. time is nil if
// the log has none, or if the state no longer has timers or a TTL.
func (l *Loader) readTime(key, data []byte) (time *timing.KeyTime, encoding byte, body []byte, err error) {
	if l.frame.Encoding != codec.Timed {
		return nil, l.frame.Encoding, data, nil
	}
	if t := l.x.timedOf(l.frame.Port); t != nil {
		return t.rules.Read(string(key), data)
	}
	_, encoding, body, err = (&timing.StateRules{}).Read(string(key), data)
	return nil, encoding, body, err
}

// wakeFor runs the timers of a message's key and ends its TTL, if they are due at the time of the message. It is called
// before the message is processed. If this time is out of range, the message becomes a dead letter, and runs is false.
func (n *node) wakeFor(table *state.Table, position int, message any) (runs bool, err error) {
	x := n.x
	if n.buryIfOutOfTime(message) {
		return false, nil
	}
	x.keyed.entries[position] = nil // a message of another step or a due timer may have changed the entry of the key
	entry, expiring := table.Get(x.keyed.key), n.stateful.state.Expiring
	if entry == nil || entry.Time == nil || expiring != nil && !expiring.Prolongs(message) {
		return true, nil
	}
	err = n.stateful.timed.wake(x, table, entry, x.timestamp)
	if expiring != nil && !expiring.IsIn(entry.Value) {
		entry.Time.Sleep()
	}
	return true, err
}

// arrive records the time of a message and the timers that the function has set. It is called after the function has
// succeeded.
func (t *timed) arrive(n *node, table *state.Table, entry *state.Entry, message any) {
	times, expiring := table.Times(&t.rules), n.stateful.state.Expiring
	if entry.Time == nil {
		entry.Time = t.rules.New(entry.Key)
	}
	if expiring == nil || expiring.Prolongs(message) {
		entry.Time.Arrive(n.x.timestamp)
	}
	entry.Time.Apply(n.x.keyed.asked)
	if expiring != nil && !expiring.IsIn(entry.Value) {
		entry.Time.Sleep()
		if expiring.IsEmpty(entry.Value) {
			table.Drop(entry.Key)
			return
		}
	}
	times.Enroll(entry.Time)
}

// tick runs the timers and TTLs that are due at a tick. A visit counts as a tick.
func (t *timed) tick(x *Executor, tick *arrival) error {
	table := x.keyed.bucket.Table(t.port)
	changed := func(s *timing.KeyTime) { table.Touch(table.Get([]byte(s.Key))) }
	for _, s := range table.Times(&t.rules).Tick(tick.timestamp, changed) {
		entry := table.Get([]byte(s.Key))
		x.turnTo(tick, entry)
		if err := t.wake(x, table, entry, s.At(tick.timestamp)); err != nil {
			return err
		}
	}
	return x.err
}

// wake runs the timers of a key that are due at the time `at` of the key, and ends the state if its TTL is over then.
func (t *timed) wake(x *Executor, table *state.Table, entry *state.Entry, at int64) error {
	for timer := range entry.Time.Wake(at) {
		if timer == nil {
			return t.expire(x, table, entry)
		}
		table.Touch(entry)
		if err := t.fire(x, table, entry, timer); err != nil {
			return err
		}
		if table.Get([]byte(entry.Key)) != entry {
			return nil
		}
	}
	table.Times(&t.rules).Enroll(entry.Time)
	return nil
}

// expire ends the TTL of a key: it removes the state, or the part of the state that the TTL ends
// (declaration.Expiring).
func (t *timed) expire(x *Executor, table *state.Table, entry *state.Entry) error {
	n := t.steps[0]
	expiring := n.stateful.state.Expiring
	if expiring == nil {
		n.add("expired")
		table.Drop(entry.Key)
		return nil
	}
	if expiring.IsIn(entry.Value) {
		timestamp := x.timestamp
		if t.rules.IsEvent {
			x.timestamp = entry.Time.End()
		}
		failed, err := n.visitKey(table, entry, &pb.Visit{})
		x.timestamp = timestamp
		if err != nil {
			return err
		}
		if !failed {
			n.add("expired")
		}
	}
	if table.Get([]byte(entry.Key)) == entry {
		entry.Time.Sleep()
		table.Touch(entry)
		table.Times(&t.rules).Enroll(entry.Time)
	}
	return nil
}

// fire runs the function of a timer. It does nothing if the step no longer has this timer.
func (t *timed) fire(x *Executor, table *state.Table, entry *state.Entry, timer *timing.SetTimer) error {
	n, timestamp := t.owners[timer.Name], x.timestamp
	if n == nil {
		return nil
	}
	defer func() { x.timestamp = timestamp }()
	if t.rules.IsEvent {
		x.timestamp = timer.Due
	}
	x.flight.Advance()
	n.add("timers_fired")
	call := timing.NewChanges(timer.Due, n.stateful.timers)
	given := &wa.Timer{Name: timer.Name, Key: x.keyed.key, At: time.UnixMilli(timer.Due)}
	_, err := n.runOn(table, entry, &function{
		input: []byte(timer.Name), deletes: given.DeletesState, done: func() { entry.Time.Apply(call) },
		run: func(value any) emission.Results { return n.stateful.functions.Fire(call, given, value) },
	})
	return err
}

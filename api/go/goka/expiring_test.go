package goka

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"wallarooapi/goka/codec"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

const lifetimeMs, none = 1000, math.MinInt64

// mortal is a key in the reference, with its value, its times and the expected output.
type mortal struct {
	value        *int64
	joined       string
	time, silent int64    // latest time of its messages while it has a value; time of the first tick after them
	table, seen  []string // the table's records, and what callbacks have seen
}

// mortals is a simple reference for groups with a TTL: it checks all keys in each step.
type mortals struct {
	keys  map[string]*mortal
	clock int64
}

func (m *mortal) set(value *int64) {
	m.value = value
	if text := "none"; value == nil {
		m.table = append(m.table, text)
	} else {
		m.table = append(m.table, fmt.Sprint(*value))
	}
}

func (m *mortal) message(op string, at int64) {
	if m.value != nil && m.time+lifetimeMs <= at {
		m.set(nil)
	}
	if m.value == nil {
		m.time = none
	}
	text := "none"
	if m.value != nil {
		text = fmt.Sprint(*m.value)
	}
	switch op {
	case "fail":
		return
	case "add":
		next := int64(1)
		if m.value != nil {
			next += *m.value
		}
		m.set(&next)
	case "delete":
		m.set(nil)
	}
	m.seen, m.time, m.silent = append(m.seen, text+" "+m.joined), max(m.time, at), none
}

func (m *mortals) advance(d int64) {
	for _, each := range m.keys {
		if each.silent == none {
			each.silent = m.clock
		}
	}
	m.clock += d
	for _, each := range m.keys {
		if each.value != nil && m.clock-each.silent >= lifetimeMs {
			each.set(nil)
		}
	}
}

func (m *mortals) visit() {
	for _, each := range m.keys {
		if each.value != nil {
			each.set(nil)
		}
	}
}

func mortalGroup() *GroupGraph {
	callback := func(ctx Context, message any) {
		joined, _ := ctx.Join("users").(string)
		value, has := ctx.Value().(int64)
		text := "none"
		if has {
			text = fmt.Sprint(value)
		}
		ctx.Emit("seen", ctx.Key(), text+" "+joined)
		switch message {
		case "add":
			ctx.SetValue(value + 1)
		case "delete":
			ctx.Delete()
		case "fail":
			ctx.SetValue(value + 100)
			panic("as the message says")
		}
	}
	return DefineGroup("mortal", Input("in", new(codec.String), callback), Join("users", new(codec.String)), Persist(new(codec.Int64)),
		Output("seen", new(codec.String)), TTL(lifetimeMs*time.Millisecond),
		Visitor("clear", func(ctx Context, _ any) { ctx.Delete() }))
}

func TestDrawnGroupsWithATTL(t *testing.T) {
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 5))
		how := []wallarootest.Option{}
		if seed%3 > 0 {
			how = append(how, wallarootest.Vary(seed))
		}
		e := newEngine(t, mortalGroup(), []ProcessorOption{WithDeadLetters()}, how...)
		reference := &mortals{keys: map[string]*mortal{}}
		data := wallarootest.Start.UnixMilli() // time of the data, which is not that of the clock
		for range 40 {
			key := names[random.IntN(3)]
			known := reference.keys[key]
			if known == nil {
				known = &mortal{time: none, silent: none}
				reference.keys[key] = known
			}
			switch action := random.IntN(12); {
			case action < 6:
				data += int64([]int{0, 1, 200, 999, 1000}[random.IntN(5)])
				at, op := data-int64(random.IntN(2)*random.IntN(1500)), []string{"add", "add", "delete", "see", "fail"}[random.IntN(5)]
				known.message(op, at)
				e.app.Send("in", stream.KafkaRecord{Topic: "in", Key: []byte(key), Value: []byte(op), Time: time.UnixMilli(at)})
			case action < 8: // a record of a joined table, whose time matters to nobody
				var value []byte
				if known.joined = []string{"", "A", "B"}[random.IntN(3)]; known.joined != "" {
					value = []byte(known.joined)
				}
				e.app.Send("users", stream.KafkaRecord{Topic: "users", Key: []byte(key), Value: value, Time: time.UnixMilli(data + int64(random.IntN(9000)))})
			case action < 9:
				reference.visit()
				e.app.Visit("clear", nil)
			default:
				d := int64([]int{0, 1, 400, 999, 1000, 1500}[random.IntN(6)])
				reference.advance(d)
				e.app.Advance(time.Duration(d) * time.Millisecond)
			}
		}
		e.app.DeadLetters()
		got := map[string][2][]string{}
		for place, topic := range []string{"mortal-table", "seen"} {
			for _, record := range e.app.KafkaRecords(topic) {
				both, text := got[string(record.Key)], "none"
				if record.Value != nil {
					text = string(record.Value)
				}
				both[place] = append(both[place], text)
				got[string(record.Key)] = both
			}
		}
		want, kept := map[string][2][]string{}, []string{}
		for key, known := range reference.keys {
			if len(known.table)+len(known.seen) > 0 {
				want[key] = [2][]string{known.table, known.seen}
			}
			if known.value != nil || known.joined != "" {
				kept = append(kept, key)
			}
		}
		if slices.Sort(kept); fmt.Sprint(want) != fmt.Sprint(got) || !slices.Equal(kept, slices.Sorted(slices.Values(e.app.Keys("mortal")))) {
			t.Fatalf("seed %d: %v, keys %q\n  not %v, %q", seed, got, e.app.Keys("mortal"), want, kept)
		}
	}
}

func TestTTLsThatCannotBe(t *testing.T) {
	in, persist := Input("in", new(codec.String), func(Context, any) {}), Persist(new(codec.Int64))
	for text, edges := range map[string][]Edge{
		"TTL cannot be used in a group without table; add goka.Persist(...), or leave goka.TTL out":  {in, TTL(time.Hour)},
		"TTL is 0s; expected whole milliseconds, from one to 100 years, e.g. goka.TTL(time.Hour)":    {in, persist, TTL(0)},
		"TTL is 1.5µs; expected whole milliseconds, from one to 100 years, e.g. goka.TTL(time.Hour)": {in, persist, TTL(1500)},
		"more than one TTL in group graph; leave one goka.TTL":                                       {in, persist, TTL(time.Hour), TTL(time.Hour)},
		"<nil>": {in, persist, TTL(time.Hour)},
	} {
		graph := DefineGroup("g", edges...)
		for _, each := range []*GroupGraph{graph, DefineGroup("g", graph.AllEdges()...)} {
			if got := fmt.Sprint(each.Validate()); got != text {
				t.Errorf("%s, not %s", got, text)
			}
		}
		if want := len(edges); len(graph.AllEdges()) != want {
			t.Errorf("%v", graph.AllEdges())
		}
	}
}

package goka

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	theirs "github.com/lovoo/goka"
	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// The groups of this file run with the same messages on Goka's own processor, under its tester, and on the in-memory
// engine. Tables and outputs must be equal. Each message contains a drawn list of actions for the callback.

// step is one action of a callback.
type step struct {
	Do      string
	Key     string            `json:",omitempty"`
	Number  int64             `json:",omitempty"`
	None    bool              `json:",omitempty"`
	Headers map[string]string `json:",omitempty"`
	Then    []step            `json:",omitempty"` // of a message to the loop
}

// script is a message: a list of steps.
type script struct{}

func (script) Encode(value any) ([]byte, error) { return json.Marshal(value) }

func (script) Decode(data []byte) (any, error) {
	if len(data) == 0 {
		return []step(nil), nil // as NilDecode gives it
	}
	var steps []step
	err := json.Unmarshal(data, &steps)
	return steps, err
}

func optional(number int64, none bool) any {
	if none {
		return nil
	}
	return number
}

// perform runs a script. It emits the values that it reads to the output "seen".
func perform(ctx Context, message any) {
	see := func(what string, values ...any) {
		ctx.Emit("seen", ctx.Key(), fmt.Sprint(append([]any{what}, values...)...))
	}
	steps, is := message.([]step)
	see("message", ctx.Topic(), len(steps), is, message == nil, len(ctx.Headers()), string(ctx.Headers()["h"]), ctx.Group())
	if ctx.Topic() != "drawn-loop" && ctx.Topic() != "steps" { // the tester gives loops no time, and visits have the present
		see("time", ctx.Timestamp().UTC())
	}
	for _, s := range steps {
		options := []ContextOption{}
		for name, value := range s.Headers {
			options = append(options, WithCtxEmitHeaders(Headers{name: []byte(value)}))
		}
		switch s.Do {
		case "set":
			ctx.SetValue(s.Number, options...)
		case "add":
			value, _ := ctx.Value().(int64)
			ctx.SetValue(value+s.Number, options...)
		case "delete":
			ctx.Delete(options...)
		case "value":
			see("value", ctx.Value())
		case "join":
			see("join", ctx.Join("users"))
		case "emit":
			ctx.Emit("out", s.Key, optional(s.Number, s.None), options...)
		case "loop":
			ctx.Loopback(s.Key, s.Then, options...)
		}
	}
}

func drawn(wraps bool) (*GroupGraph, []ProcessorOption) {
	options := []ProcessorOption{WithProducerDefaultHeaders(Headers{"default": []byte("d")})}
	if wraps {
		options = append(options, WithContextWrapper(func(ctx Context) Context { return wrapped{ctx} }))
	}
	return DefineGroup("drawn",
		Inputs(Streams{"one", "two"}, script{}, perform),
		Loop(script{}, perform),
		Join("users", new(codec.String)),
		Persist(new(codec.Int64)),
		Output("out", new(codec.Int64)),
		Output("seen", new(codec.String)),
	), options
}

type inner = Context

// wrapped is a context that changes each value that a callback writes.
type wrapped struct{ inner }

func (w wrapped) SetValue(value any, options ...ContextOption) {
	w.inner.SetValue(value.(int64)+1000, options...)
}

// arrival is a drawn message.
type arrival struct {
	topic, key string
	value      any
	headers    Headers
}

var names = []string{"", "a", "b", "ü", "some-key"}

func draw(random *rand.Rand) (all []arrival) {
	for range 1 + random.IntN(30) {
		each := arrival{topic: []string{"one", "two", "users"}[random.IntN(3)], key: names[random.IntN(len(names))]}
		switch {
		case random.IntN(6) == 0: // a tombstone
		case each.topic == "users":
			each.value = fmt.Sprint("user ", random.IntN(100))
		default:
			each.value = drawSteps(random, 2)
		}
		if random.IntN(3) == 0 {
			each.headers = Headers{"h": []byte(fmt.Sprint(random.IntN(10)))}
		}
		all = append(all, each)
	}
	return all
}

func drawSteps(random *rand.Rand, depth int) []step {
	steps := make([]step, random.IntN(5))
	for i := range steps {
		s := step{Do: []string{"set", "add", "delete", "value", "join", "emit", "loop"}[random.IntN(7)], Key: names[random.IntN(len(names))]}
		s.Number, s.None = int64(random.IntN(9)-4), random.IntN(5) == 0
		if random.IntN(3) == 0 {
			s.Headers = map[string]string{"x": fmt.Sprint(random.IntN(5)), "default": "over"}
		}
		if s.Do == "loop" && depth == 0 {
			s.Do = "value"
		}
		if s.Do == "loop" {
			s.Then = drawSteps(random, depth-1)
		}
		steps[i] = s
	}
	return steps
}

// result is the output of a run: the records by topic and key, in order, and the table.
type result struct {
	records map[string][]string
	table   map[string]any
}

func (r *result) add(topic, key string, value []byte, headers Headers) {
	shown, _ := json.Marshal(headers)
	text := fmt.Sprintf("%q %v %s", value, value == nil, shown)
	r.records[topic+" "+key] = append(r.records[topic+" "+key], text)
}

// warm waits until Goka's tester delivers records of joined tables. For a moment after its start it loses them.
func warm(kafka *tester.Tester) {
	tracker := kafka.NewQueueTracker("seen")
	for {
		kafka.Consume("users", "warm", "joined")
		kafka.Consume("one", "warm", []step{{Do: "join"}})
		for _, value, ok := tracker.NextRaw(); ok; _, value, ok = tracker.NextRaw() {
			if string(value) == "joinjoined" {
				return
			}
		}
	}
}

// onGoka runs messages on Goka's own processor.
func onGoka(t *testing.T, arrivals []arrival, graph *GroupGraph, options []ProcessorOption) result {
	return onGokaThen(t, arrivals, graph, options, func(*Processor, *tester.Tester) {})
}

// onGokaThen is onGoka, and calls a function after the messages.
func onGokaThen(
	t *testing.T, arrivals []arrival, graph *GroupGraph, options []ProcessorOption, then func(*Processor, *tester.Tester),
) result {
	kafka := tester.New(t)
	processor, err := NewProcessor(nil, graph, append(options, WithTester(kafka))...)
	if err != nil {
		t.Fatal(err)
	}
	topics := []string{"out", "seen", graph.tableTopic, graph.loopTopic}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(ctx) }()
	_ = processor.WaitForReady()
	warm(kafka)
	var trackers []*tester.QueueTracker
	for _, topic := range topics {
		trackers = append(trackers, kafka.NewQueueTracker(topic))
	}
	for _, each := range arrivals {
		kafka.Consume(each.topic, each.key, each.value, tester.WithHeaders(theirs.Headers(each.headers)), tester.WithTime(wallarootest.Start))
	}
	then(processor, kafka)
	made := result{map[string][]string{}, map[string]any{}}
	for i, tracker := range trackers {
		for headers, key, value, ok := tracker.NextRawWithHeaders(); ok; headers, key, value, ok = tracker.NextRawWithHeaders() {
			if len(headers) == 0 {
				headers = nil
			}
			made.add(topics[i], key, value, headers)
		}
	}
	for _, name := range names {
		if value := kafka.TableValue(GroupTable("drawn"), name); value != nil {
			made.table[name] = value
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return made
}

// engine runs a group on the in-memory engine, with its loop.
type engine struct {
	app    *wallarootest.App
	group  *group
	looped int
}

// groupOf returns the group of a valid graph.
func groupOf(graph *GroupGraph, options ...ProcessorOption) *group {
	made, err := newGroup(graph, newOptions(graph, options), context.Background)
	if err != nil {
		panic(err)
	}
	return made
}

func newEngine(t wallarootest.T, graph *GroupGraph, options []ProcessorOption, how ...wallarootest.Option) *engine {
	g := groupOf(graph, options...)
	return &engine{app: wallarootest.New(t, application([]string{"127.0.0.1:9092"}, []*group{g}), how...), group: g}
}

// send sends a record to a source, and the records that follow from it to the loop.
func (e *engine) send(source string, record stream.KafkaRecord) {
	e.app.Send(source, record)
	e.drain()
}

// drain sends the waiting records of the loop to the loop's source.
func (e *engine) drain() {
	if e.group.graph.LoopStream() == nil {
		return
	}
	for {
		looped := e.app.KafkaRecords(e.group.graph.loopTopic)
		if len(looped) == e.looped {
			return
		}
		next := looped[e.looped]
		e.looped++
		next.Topic, next.Time = e.group.graph.loopTopic, wallarootest.Start
		e.app.Send(e.group.graph.loopTopic, next)
	}
}

// onEngine runs messages on the in-memory engine.
func onEngine(t *testing.T, arrivals []arrival, graph *GroupGraph, options []ProcessorOption) result {
	return onEngineThen(t, arrivals, graph, options, func(*engine) {})
}

// onEngineThen is onEngine, and calls a function after the messages.
func onEngineThen(t *testing.T, arrivals []arrival, graph *GroupGraph, options []ProcessorOption, then func(*engine)) result {
	e := newEngine(t, graph, options)
	for _, each := range arrivals {
		record := stream.KafkaRecord{Topic: each.topic, Key: []byte(each.key), Time: wallarootest.Start}
		if each.value != nil {
			record.Value, _ = graph.codecs[each.topic].Encode(each.value)
		}
		for name, value := range each.headers {
			record.Headers = append(record.Headers, stream.KafkaHeader{Key: name, Value: value})
		}
		e.send(each.topic, record)
	}
	then(e)
	made := result{map[string][]string{}, map[string]any{}}
	for _, topic := range graph.written() {
		for _, record := range e.app.KafkaRecords(topic) {
			headers := headersOf(record)
			if len(headers) == 0 {
				headers = nil
			}
			made.add(topic, string(record.Key), record.Value, headers)
			if topic != graph.tableTopic {
				continue
			}
			delete(made.table, string(record.Key))
			if record.Value != nil {
				made.table[string(record.Key)], _ = graph.codecs[topic].Decode(record.Value)
			}
		}
	}
	return made
}

func TestDrawnGroupsAsGoka(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 13))
		arrivals, mode := draw(random), NilHandling(random.IntN(3))
		graph, options := drawn(random.IntN(3) == 0)
		options = append(options, WithNilHandling(mode))
		wanted, got := onGoka(t, arrivals, graph, options), onEngine(t, arrivals, graph, options)
		if difference := differ(wanted, got); difference != "" {
			t.Fatalf("seed %d, nil mode %d, %+v\n%s", seed, mode, arrivals, difference)
		}
	}
}

func differ(wanted, got result) string {
	if fmt.Sprint(wanted.table) != fmt.Sprint(got.table) {
		return fmt.Sprintf("table %v\n  not %v", got.table, wanted.table)
	}
	for key := range wanted.records {
		if !slices.Equal(wanted.records[key], got.records[key]) {
			return fmt.Sprintf("%s: %q\n  not %q", key, got.records[key], wanted.records[key])
		}
	}
	if len(wanted.records) != len(got.records) {
		return fmt.Sprintf("records for %d keys, not %d", len(got.records), len(wanted.records))
	}
	return ""
}

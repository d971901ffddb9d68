package goka

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka/storage"

	"wallarooapi/goka/codec"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

func record(topic, key string, value []byte) stream.KafkaRecord {
	return stream.KafkaRecord{Topic: topic, Key: []byte(key), Value: value, Time: wallarootest.Start}
}

// TestDeferCommitHoldsTheMessage checks that a call returns only after its DeferCommit functions were called.
func TestDeferCommitHoldsTheMessage(t *testing.T) {
	var done []string
	graph := DefineGroup("deferring", Input("in", new(codec.String), func(ctx Context, message any) {
		commit := ctx.DeferCommit()
		go func() {
			time.Sleep(time.Millisecond)
			done = append(done, message.(string))
			commit(nil)
		}()
	}))
	e := newEngine(t, graph, nil)
	for i := range 5 {
		e.app.Send("in", record("in", "k", fmt.Append(nil, i)))
		if len(done) != i+1 {
			t.Fatalf("%d messages are done after %d", len(done), i+1)
		}
	}
}

// TestUpdateCallbacks checks that a joined table gets the values that the update callback stores, only for the key of
// the record.
func TestUpdateCallbacks(t *testing.T) {
	var keys []error
	update := func(ctx UpdateContext, kept storage.Storage, key string, value []byte) error {
		_, err := kept.Get("another")
		keys = append(keys, err, kept.Set("another", nil), kept.Delete("another"))
		old, _ := kept.Get(key)
		return kept.Set(key, append(append(old, '+'), fmt.Appendf(nil, "%s %s %d", ctx.Topic(), value, len(ctx.Headers()))...))
	}
	graph := DefineGroup("updating", Join("users", new(codec.String)), Output("out", new(codec.String)),
		Input("in", new(codec.String), func(ctx Context, _ any) { ctx.Emit("out", ctx.Key(), ctx.Join("users")) }))
	e := newEngine(t, graph, []ProcessorOption{WithUpdateCallback(update)})
	for _, value := range []string{"one", "two"} {
		e.app.Send("users", record("users", "k", []byte(value)))
	}
	e.app.Send("in", record("in", "k", []byte("")))
	if out := e.app.KafkaRecords("out"); len(out) != 1 || string(out[0].Value) != "+users one 0+users two 0" {
		t.Errorf("%v", out)
	}
	if len(keys) == 0 || slices.Contains(keys, nil) {
		t.Errorf("another key: %v", keys)
	}
}

// TestInputThatIsJoinedToo checks that a topic may be an input and a joined table.
func TestInputThatIsJoinedToo(t *testing.T) {
	graph := DefineGroup("both", Join("in", new(codec.String)), Output("out", new(codec.String)),
		Input("in", new(codec.String), func(ctx Context, message any) {
			ctx.Emit("out", ctx.Key(), fmt.Sprint(message, " ", ctx.Join("in")))
		}))
	e := newEngine(t, graph, nil)
	e.app.Send("0/sources/0", record("in", "k", []byte("first")))
	e.app.Send("0/sources/1", record("in", "k", []byte("first")))
	e.app.Send("0/sources/0", record("in", "k", []byte("second")))
	if out := e.app.KafkaRecords("out"); len(out) != 2 || string(out[0].Value) != "first <nil>" || string(out[1].Value) != "second first" {
		t.Errorf("%v", out)
	}
}

// TestHasher checks that the program's hasher chooses the partitions of keys in the same way as in sarama: |int32(hash)
// % n|.
func TestHasher(t *testing.T) {
	for name, hasher := range map[string]func() hash.Hash32{"fnv": fnv.New32a, "crc": crc32.NewIEEE} {
		graph := DefineGroup("hashing", Input("in", new(codec.String), func(ctx Context, _ any) { ctx.Emit("out", ctx.Key(), "") }),
			Output("out", new(codec.String)))
		e := newEngine(t, graph, []ProcessorOption{WithHasher(hasher)})
		e.group.partitions["out"] = 8
		for _, key := range append(slices.Clone(names), "Alice", "Bob", "user-3") {
			e.app.Send("in", record("in", key, []byte{}))
			sum := hasher()
			sum.Write([]byte(key))
			wanted := int32(sum.Sum32()) % 8
			out := e.app.KafkaRecords("out")
			if got := out[len(out)-1]; *got.Partition != max(wanted, -wanted) {
				t.Errorf("%s: %q goes to %d, not %d", name, key, *got.Partition, wanted)
			}
		}
	}
}

// TestStatsHaveGokasShape checks that Stats counts by partition and topic, in the form of Goka's statistics.
func TestStatsHaveGokasShape(t *testing.T) {
	graph := counted(Join("users", new(codec.String)), Output("out", new(codec.String)))
	graph.callbacks["in"] = func(ctx Context, _ any) {
		ctx.SetValue(int64(12))
		ctx.Emit("out", "k", "four")
		ctx.Delete()
	}
	e := newEngine(t, graph, nil)
	for partition := range int32(2) {
		for range 3 {
			one := record("in", "k", []byte("five5"))
			one.Partition, one.Offset = &partition, 7
			e.app.Send("in", one)
		}
	}
	e.app.Send("users", record("users", "k", []byte("me")))
	stats := e.group.counts.snapshot(graph, 3)
	if len(stats) != 3 {
		t.Fatalf("%v", stats)
	}
	one := stats[1]
	if in := one.Input["in"]; in.Count != 3 || in.Bytes != 15 || in.LastOffset != 7 || in.Delay <= 0 {
		t.Errorf("input %+v", in)
	}
	if one.Output["out"].Count != 3 || one.Output["out"].Bytes != 12 || one.Output["g-table"].Count != 3 || one.TableStats.Writes.Bytes != 6 {
		t.Errorf("output %+v, table %+v", one.Output["out"], one.TableStats.Writes)
	}
	if stats[0].Joined["users"].Input.Count != 1 || one.Joined["users"].Input.Count != 0 || one.Input["g-loop"].Count != 0 {
		t.Errorf("joined %+v", stats[0].Joined["users"].Input)
	}
}

// TestDrawnGroupsInAnyOrder draws buckets, micro-batches and frames, and checks that each key gets the same records in
// the same order.
func TestDrawnGroupsInAnyOrder(t *testing.T) {
	sum := func(seed uint64, how ...wallarootest.Option) string {
		graph := DefineGroup("sums", Persist(new(codec.Int64)), Input("in", new(codec.Int64), func(ctx Context, message any) {
			value, _ := ctx.Value().(int64)
			ctx.SetValue(value*3 + message.(int64))
		}))
		e := newEngine(t, graph, nil, how...)
		for i := range 50 {
			e.app.Send("in", record("in", names[(uint64(i)*seed)%5], fmt.Append(nil, i)))
		}
		all := map[string][]string{}
		for _, each := range e.app.KafkaRecords("sums-table") {
			all[string(each.Key)] = append(all[string(each.Key)], string(each.Value))
		}
		return fmt.Sprint(all)
	}
	for seed := range uint64(6) {
		if wanted, got := sum(seed), sum(seed, wallarootest.Vary(seed)); wanted != got {
			t.Fatalf("seed %d: %s\n  not %s", seed, got, wanted)
		}
	}
}

// TestATopologyForEachKindOfGroup checks that groups of all kinds declare correct applications, also several groups
// that read and write the same topics.
func TestATopologyForEachKindOfGroup(t *testing.T) {
	none := func(Context, any) {}
	in := func() Edge { return Input("in", new(codec.String), none) }
	for name, graphs := range map[string][]*GroupGraph{
		"nothing but an input": {DefineGroup("a", in())},
		"several groups": {
			DefineGroup("a", in(), Persist(new(codec.Int64))), DefineGroup("b", in(), Output("x", new(codec.String)), Loop(new(codec.String), none)),
			DefineGroup("c", Inputs(Streams{"in", "x"}, new(codec.String), none), Join("a-table", new(codec.Int64)), Output("x", new(codec.String))),
		},
	} {
		var groups []*group
		var wanted []string
		for _, graph := range graphs {
			groups = append(groups, groupOf(graph))
			wanted = append(wanted, string(graph.Group()))
		}
		app := application([]string{"127.0.0.1:9092"}, groups)
		if err := app.Check(); err != nil || !strings.Contains(app.ToJson(), `"name": "`+strings.Join(wanted, " + ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNamesAreThoseOfPython checks that sources and sinks have the same names as in Python, for the groups of
// tests/test_goka.py.
func TestNamesAreThoseOfPython(t *testing.T) {
	none, text := func(Context, any) {}, new(codec.String)
	first := DefineGroup("a", Input("in", text, none), Loop(text, none), Output("x", text), Persist(text), Join("users", text))
	second := DefineGroup("b", Inputs(Streams{"in", "x"}, text, none), Join("a-table", text), Join("users", text))
	groups := []*group{groupOf(first), groupOf(second)}
	var document struct {
		Name      string
		Pipelines []struct{ Sources, Sinks []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(application([]string{"127.0.0.1:9092"}, groups).ToJson()), &document); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pipeline := range document.Pipelines {
		for _, node := range slices.Concat(pipeline.Sources, pipeline.Sinks) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	wanted := []string{"a-loop", "a-loop", "a-table", "a-table", "b", "in", "input in of b", "join users of b", "users", "x", "x"}
	if document.Name != "a + b" || !slices.Equal(names, wanted) {
		t.Errorf("%s: %q", document.Name, names)
	}
}

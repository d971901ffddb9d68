package stream_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	pb "wallarooapi/internal/workerpb"
	"wallarooapi/stream"
)

func compiled(t *testing.T, app *stream.Application, nodes ...*pb.Node) *stage.Executor {
	t.Helper()
	result, ok := declaration.Lookup(app.ToJson())
	if !ok || len(result.Found) > 0 {
		t.Fatalf("the application is wrong: %v", result.Found)
	}
	x, err := stage.New(result.Application, &pb.Stage{Id: "s", BucketCount: 1, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func lines(t *testing.T, texts ...string) []byte {
	t.Helper()
	var values []byte
	for _, text := range texts {
		values = append(binary.BigEndian.AppendUint32(values, uint32(len(text))), text...)
	}
	bytes, err := frame.WriteFramed(0, 0, 0, len(texts), values)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// read returns the values in the frames for a port. It returns dead letters as texts with code, step and error.
func read(t *testing.T, outputs []stage.OutputFrame, port uint16) (texts []string) {
	t.Helper()
	for _, output := range outputs {
		if output.Port != port {
			continue
		}
		var f frame.Frame
		if _, err := f.Read(output.Frame); err != nil {
			t.Fatal(err)
		}
		data := f.Values
		for i := range f.Count {
			length := f.Lengths.At(i)
			text := string(data[:length])
			data = data[length:]
			if port == frame.DeadLetterPort {
				letter := &pb.DeadLetter{}
				if err := proto.Unmarshal([]byte(text), letter); err != nil {
					t.Fatal(err)
				}
				text = letter.GetCode() + " " + letter.GetStep() + ": " + letter.GetError()
			}
			texts = append(texts, text)
		}
	}
	return texts
}

func play(t *testing.T, x *stage.Executor, frames []byte) (outputs []stage.OutputFrame) {
	t.Helper()
	err := x.Run(frames, func(port uint16, bucket int32, bytes []byte) error {
		outputs = append(outputs, stage.OutputFrame{Port: port, Bucket: bucket, Frame: bytes})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return outputs
}

// playState runs a state step on messages, with a new state.
func playState(t *testing.T, x *stage.Executor, frames []stage.OutputFrame) []stage.OutputFrame {
	t.Helper()
	empty := func() (*state.Bucket, error) { return state.NewBucket(), nil }
	bucket, _ := empty()
	call := x.NewCall(bucket, empty)
	for _, one := range frames {
		if err := call.Run(one.Frame); err != nil {
			t.Fatal(err)
		}
	}
	outputs, _, _, err := call.Finish(false)
	if err != nil {
		t.Fatal(err)
	}
	return outputs
}

type item struct{ Name string }

type stock struct{ Counts map[string]int }

func (s *stock) Init() { s.Counts = map[string]int{} }

var source = stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)

func TestErrorsNilAndSkip(t *testing.T) {
	app := stream.New("Items")
	texts := stream.From(app, "texts", source)
	items := stream.Map(texts, "item", func(ctx context.Context, text string) (*item, error) {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case text == "nil":
			return nil, nil
		case text == "skip":
			return &item{text}, stream.ErrSkip
		case text == "error":
			return nil, errors.New("no item")
		}
		return &item{text}, nil
	})
	pairs := stream.FlatMap(items, "pairs", func(_ context.Context, i *item) ([]*item, error) {
		if i.Name == "multi error" {
			return []*item{i}, errors.New("no pair")
		}
		return []*item{i, nil, {i.Name + "'"}}, nil
	})
	kept := stream.Filter(pairs, "short", func(_ context.Context, i *item) (bool, error) { return len(i.Name) < 4, nil })
	kept.To(stream.TCPSink("127.0.0.1:7002", func(i *item) ([]byte, error) {
		if i.Name == "bad" {
			return nil, errors.New("no bytes")
		}
		return []byte(i.Name), nil
	}))
	x := compiled(t, app,
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/sources/0"}},
		&pb.Node{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_COMPUTATION_MULTI, Inputs: []string{"0/steps/0"}},
		&pb.Node{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/steps/1"}},
		&pb.Node{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/2"}, Port: 2},
	)
	outputs := play(t, x, lines(t, "a", "nil", "skip", "error", "multi error", "bad", "\xff", "abc"))
	if got, want := read(t, outputs, 2), []string{"a", "a'", "abc"}; !slices.Equal(got, want) {
		t.Errorf("messages are %q; want %q", got, want)
	}
	want := []string{"C501 item: no item", "C501 pairs: no pair", "C501 Items: no bytes", "C505 texts: the text is not UTF-8"}
	if got := read(t, outputs, frame.DeadLetterPort); !slices.Equal(got, want) {
		t.Errorf("dead letters are %q; want %q", got, want)
	}
}

func TestStateByKey(t *testing.T) {
	app := stream.New("Stock")
	keyed := stream.KeyBy(stream.From(app, "texts", source), "first", func(text string) string { return text[:1] })
	counts := stream.FlatMapState(keyed, "count", func(_ context.Context, text string, s *stock) ([]string, error) {
		s.Counts[text]++
		if text == "ax" {
			return nil, errors.New("no x")
		}
		return []string{fmt.Sprint(text, len(s.Counts), s.Counts[text])}, nil
	})
	stream.MapState(counts, "count", func(_ context.Context, text string, n *int) (string, error) {
		*n++
		return fmt.Sprint(text, *n), nil
	}).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	first := compiled(t, app,
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_KEY_BY, Inputs: []string{"0/sources/0"}},
		&pb.Node{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 1},
	)
	second := compiled(t, app,
		&pb.Node{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, Port: 1, StatePort: 1},
		&pb.Node{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/1"}, Port: 2},
	)
	third := compiled(t, app,
		&pb.Node{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: 2, StatePort: 2},
		&pb.Node{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/2"}, Port: 3},
	)
	counted := playState(t, second, play(t, first, lines(t, "ab", "ab", "b", "ax", "ac")))
	if got := read(t, counted, frame.DeadLetterPort); len(got) != 1 || got[0] != "C501 count: no x" {
		t.Errorf("dead letters are %q", got)
	}
	outputs := playState(t, third, slices.DeleteFunc(counted, func(o stage.OutputFrame) bool { return o.Port != 2 }))
	if got, want := read(t, outputs, 3), []string{"ab1 11", "ab1 22", "b1 11", "ac2 13"}; !slices.Equal(got, want) {
		t.Errorf("messages are %q; want %q", got, want)
	}
}

func TestMessagesHaveTheTimesThatTheyName(t *testing.T) {
	app := stream.New("Times")
	when := func(payload []byte) time.Time { return time.UnixMilli(int64(payload[0])) }
	texts := stream.From(app, "texts", source.EventTime(when))
	pass := func(_ context.Context, text string, _ *int) (string, error) { return text, nil }
	stream.MapState(stream.Collect(texts), "pass", pass).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	x := compiled(t, app,
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COLLECT, Inputs: []string{"0/sources/0"}},
		&pb.Node{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 1, Timestamps: true},
	)
	var f frame.Frame
	outputs := play(t, x, lines(t, "b", "", "a"))
	if _, err := f.Read(outputs[0].Frame); err != nil {
		t.Fatal(err)
	}
	if got := []int64{f.TimestampOf(0), f.TimestampOf(1)}; f.Count != 2 || !slices.Equal(got, []int64{'b', 'a'}) {
		t.Errorf("times are %v", got)
	}
	// The empty message has no time, so it cannot be in a window.
	want := []string{"C505 texts: runtime error: index out of range [0] with length 0"}
	if got := read(t, outputs, frame.DeadLetterPort); !slices.Equal(got, want) {
		t.Errorf("dead letters are %q; want %q", got, want)
	}
}

func TestATimeIsAskedForOnlyWhereWindowsGoByIt(t *testing.T) {
	app := stream.New("Times")
	asked := 0
	when := func(payload []byte) time.Time { asked++; panic("no time") }
	stream.From(app, "texts", source.EventTime(when)).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	x := compiled(t, app,
		&pb.Node{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		&pb.Node{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/sources/0"}, Port: 1},
	)
	if got := read(t, play(t, x, lines(t, "b")), 1); asked != 0 || !slices.Equal(got, []string{"b"}) {
		t.Errorf("messages are %q, and the time was asked for %d times", got, asked)
	}
}

// doing is a state that encoding/json can write but not read.
type doing struct{ Act interface{ Do() } }

func TestEveryMistakeIsFoundAtOnce(t *testing.T) {
	app := stream.New("Wrong").OnError("never")
	texts := stream.From(app, "texts", stream.TCPSource("7010", "u24", stream.Text.Decode))
	stream.MapState(texts, "count", func(_ context.Context, text string, s *stock) (string, error) { return text, nil })
	stream.From(app, "none", stream.Source[string]{}).To()
	window := stream.RangeWindow(stream.Collect(texts), stream.Range{Length: time.Second, Slide: 2 * time.Second, Late: "later"},
		stream.Aggregation[string, int, int]{Name: "half"})
	window.To(stream.TCPSink[int]("127.0.0.1:1", nil))
	stream.RangeWindow(stream.Collect(texts), stream.Range{Length: time.Hour, Slide: time.Millisecond}, stream.Aggregation[string, int, int]{
		Name: "many",
	}).Done()
	stream.SessionWindow(stream.Collect(texts), stream.Session{Delay: time.Second, Late: "later"}, stream.Aggregation[string, int, int]{Name: "none"}).Done()
	stream.SessionWindow(stream.Collect(texts), stream.Session{Gap: time.Millisecond, Delay: time.Hour}, stream.Aggregation[string, int, int]{
		Name: "long",
	}).Done()
	count := stream.Aggregation[string, int, int]{
		Name: "count", Initial: func() int { return 0 }, Update: func(string, int) int { return 0 }, Combine: func(int, int) int { return 0 },
		Output: func(string, int) (int, error) { return 0, nil },
	}
	stream.CountWindow(stream.Collect(texts), stream.Count{}, count).Done()
	stream.CountWindow(stream.Collect(texts), stream.Count{Size: 3, Flush: 1500 * time.Microsecond}, count).Done()
	stream.Merge(texts, stream.From(app, "asked", stream.ConnectorSource("127.0.0.1:7100", stream.Connector{MaxCredits: 4, RefillCredits: 5},
		stream.Value(stream.Text.Decode))), texts).Done()
	write := func(string) (stream.Record, error) { return stream.Record{}, nil }
	stream.Map[string, string](texts, "nothing", nil).To(stream.KafkaSink(stream.Kafka{}, write),
		stream.KafkaSink(stream.Kafka{Topic: "t"}, write), stream.KafkaSink(stream.Kafka{Topic: "bad topic/name"}, write), stream.SparkSink(stream.Spark{}, write), stream.SparkSink(stream.Spark{Format: "csv"}, write),
		stream.SparkSink(stream.Spark{Format: "csv", Value: "value", Schema: "a INT", Key: "key", Timestamp: "t"}, write))
	stream.Register(stream.JSON[doing]())
	stream.MapState(texts, "doing", func(context.Context, string, *doing) (string, error) { return "", nil }).Done()
	type hidden struct{ field int }
	hide := func(_ context.Context, text string) (hidden, error) { return hidden{len(text)}, nil }
	stream.MapState(stream.Collect(stream.Map(texts, "hide", hide)), "hidden", func(_ context.Context, h hidden, n *int) (int, error) {
		return h.field, nil
	}).Done()
	stream.From(app, "timed", source.EventTime(nil)).Done()
	stream.Merge(stream.From(app, "lines", source), stream.From(app, "others", source)).OnError("fail").Done()
	err := app.Check()
	if err == nil {
		t.Fatal("nothing was found")
	}
	for _, want := range []string{
		"T207 EventTime: parameter when is nil; expected a function that returns the time of a payload",
		`T207 OnError: parameter policy is "fail" for no source, step or sink; expected a call directly after one of them`,
		`T207 OnError: parameter policy is "never"`,
		`T211 source address "7010" is not usable; it is not HOST:PORT`,
		`T207 TCPSource: parameter framing and decode is "u24"`,
		`T229 step "count" keeps state by the key of messages; messages from "texts" have no key`,
		`T204 pipeline "Wrong" has no end`,
		"T207 From: parameter source is without a kind",
		"T207 To: parameter sinks is empty",
		"T207 Aggregation: parameter aggregation is without one of its functions",
		"T207 RangeWindow: parameter window is 1s, 2s, 0s; expected whole milliseconds",
		"T207 RangeWindow: parameter window is later; expected Drop",
		"T207 CountWindow: parameter window is 0 messages, 5s",
		"T207 CountWindow: parameter window is 3 messages, 1.5ms; expected 1 to 1000000000 messages and one or more whole milliseconds",
		"T207 SessionWindow: parameter window is 0s, 1s; expected whole milliseconds with 0 < Gap and 0 <= Delay",
		"T207 SessionWindow: parameter window is later; expected Drop",
		"T271 3600001 windows are open at once for each key; at most 100000 can be",
		"T271 3600000 windows are open at once for each key; at most 100000 can be",
		"T207 To: parameter sinks is without an encoder",
		"T207 nothing: parameter function is nil",
		`T207 KafkaSink: parameter Topic is ""`, `T207 KafkaSink: parameter Topic is "bad topic/name"; expected a name of 1 to 249`, `T207 KafkaSink: parameter Brokers is ""`,
		`T207 SparkSink: parameter Format is ""`, `T207 SparkSink: parameter Value is ""`, `T207 SparkSink: parameter Schema is "a INT"`,
		`T207 SparkSink: parameter Key is "key"`, `T207 SparkSink: parameter Timestamp is "t"`,
		`T212 Merge cannot follow "texts"; both sides end in it`,
		`T207 ConnectorSource: parameter connector is "5 of 4 credits"; expected RefillCredits from 1 to MaxCredits`,
		"C504 doing: *stream_test.doing cannot be serialized; field Act of stream_test.doing is of type interface { Do() }; encoding/json does not read",
		"fix: leave encoding/gob to write the type and call gob.Register with a value of each type",
		"C504 hidden: stream_test.hidden cannot be serialized; field field of stream_test.hidden is not exported",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not have\n%s", err, want)
		}
	}
	if !strings.Contains(err.Error(), "stream_test.go:") || strings.Contains(err.Error(), "stream/step.go") {
		t.Errorf("places are not those of the program:\n%v", err)
	}
}

func TestPlainConnectorsHaveALengthAndATime(t *testing.T) {
	app := stream.New("plain")
	lines := stream.From(app, "lines", stream.PlainConnectorSource("127.0.0.1:7100", stream.Text.Decode))
	lines.To(stream.PlainConnectorSink("127.0.0.1:7200", stream.Text.Encode))
	if err := app.Check(); err != nil {
		t.Fatal(err)
	}
	result, _ := declaration.Lookup(app.ToJson())
	pipeline := result.Application.Pipelines[0]
	frame, _, _ := pipeline.Sinks[0].Encode("abc")
	if want := "\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abc"; string(frame) != want {
		t.Errorf("the frame is %q, not %q", frame, want)
	}
	if got := pipeline.Sources[0].Framed.Decode(frame[4:]); got != "abc" {
		t.Errorf("the message is %q", got)
	}
	defer func() {
		if err := fmt.Sprint(recover()); !strings.Contains(err, "a frame has 3 bytes; at least 8 are a time") {
			t.Errorf("a frame that is too short: %s", err)
		}
	}()
	pipeline.Sources[0].Framed.Decode(frame[:3])
}

func TestPartsOfEveryKind(t *testing.T) {
	app := stream.New("Kinds")
	args := []string{"--in_topic", "a", "--in_brokers", "h:1", "--out_topic", "b", "--out_brokers", "h:1"}
	text := stream.Value(stream.Text.Decode)
	record := func(text string) (stream.Record, error) {
		partition := int32(3)
		return stream.Record{Value: []byte(text), Key: []byte("k"), Partition: &partition}, nil
	}
	topic := stream.Kafka{Topic: "t", Brokers: []string{"h:9092"}, Options: map[string]string{"kafka.b": "1", "kafka.a": "2"}}
	some := topic
	some.Partitions, some.Options = []int{1}, map[string]string{"minPartitions": "3"}
	rate := stream.Spark{Format: "rate", Value: "CAST(value AS STRING)", Key: "value", Timestamp: "timestamp"}
	rows := stream.From(app, "rows", stream.SparkSource(rate, text))
	all := stream.Merge(rows, stream.From(app, "topic", stream.KafkaSource(some, text)), stream.From(app, "named", stream.KafkaSourceOf("in", args, text)))
	all.To(stream.KafkaSink(topic, record), stream.KafkaSinkOf("out", args, record), stream.SparkSink(stream.Spark{Format: "parquet", Value: "value"}, record).OnError("fail"))
	count := stream.Aggregation[string, int, int]{Name: "count", Initial: func() int { return 0 }, Update: func(_ string, n int) int { return n + 1 },
		Combine: func(a, b int) int { return a + b }, Output: func(_ string, n int) (int, error) { return n, nil }}
	stream.RangeWindow(rows, stream.Range{Length: time.Second}, count).Done()
	asked := stream.From(app, "asked", stream.ConnectorSource("127.0.0.1:7100", stream.Connector{Cookie: "bread"}, text))
	stream.CountWindow(asked, stream.Count{Size: 2}, count).Done()
	out := stream.TCPSink("127.0.0.1:7002", func(text string) ([]byte, error) { return []byte(text), nil })
	rows.To(out)
	plain := stream.From(app, "plain", stream.PlainConnectorSource("127.0.0.1:7101", stream.Text.Decode))
	plain.To(stream.PlainConnectorSink("127.0.0.1:7200", stream.Text.Encode), stream.ConnectorSink("127.0.0.1:7201", "butter", stream.Text.Encode))
	document := app.ToJson()
	for _, want := range []string{
		`"kind": "u32le"`, `"port": 7200,`, `"cookie": "butter",`, `"kind": "spark",`, `"timestamp": "timestamp"`, `"number": 1`, `"start": "start"`, `"time": "event"`, `"on_error": "fail"`,
		"\"options\": {\n            \"kafka.a\": \"2\",\n            \"kafka.b\": \"1\"\n          }", `"kind": "message"`, `"late": "drop"`,
		`"symbol": "stream_test.TestPartsOfEveryKind.func1"`, `"kind": "connector",`, `"cookie": "bread",`,
		`"max_credits": 100000,`, `"refill_credits": 50000,`,
	} {
		if !strings.Contains(document, want) {
			t.Errorf("%s\ndoes not have\n%s", document, want)
		}
	}
}

func TestAVisitorFitsItsStep(t *testing.T) {
	app := stream.New("Words")
	words := stream.KeyBy(stream.From(app, "words", stream.TCPSource("127.0.0.1:7010", stream.U32BE, func(text []byte) (string, error) { return string(text), nil })),
		"key", func(text string) string { return text })
	counts := stream.MapState(words, "count", func(_ context.Context, text string, count *int64) (string, error) { return text, nil })
	visitor := func(_ context.Context, _ *stream.Visit, _ *int64) (string, error) { return "", nil }
	stream.OnVisit(counts, "right", visitor)
	stream.OnVisit(counts, "right", visitor)                                                                                // twice
	stream.OnVisit(counts, "nil", (func(context.Context, *stream.Visit, *int64) (string, error))(nil))                      // none
	stream.OnVisit(counts, "other state", func(context.Context, *stream.Visit, *string) (string, error) { return "", nil }) // of another type
	stream.OnVisitFlat(counts, "flat", func(context.Context, *stream.Visit, *int64) ([]string, error) { return nil, nil })  // of another kind
	stream.OnVisit(words, "no state", func(context.Context, *stream.Visit, *int64) (string, error) { return "", nil })      // of no state step
	counts.To(stream.TCPSink("127.0.0.1:7002", func(text string) ([]byte, error) { return []byte(text), nil }))
	if found := strings.Count(app.ToJson(), `"T207"`); found != 5 {
		t.Errorf("%d findings:\n%s", found, app.ToJson())
	}
}

type votes struct{ Sum, Count float64 }

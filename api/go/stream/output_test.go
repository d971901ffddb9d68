package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

var (
	late   = stream.NewOutput[string]("late")
	alerts = stream.NewOutput[int]("alerts")
)

func sinkOf[T any](port int) stream.Sink[T] {
	return stream.TCPSink(fmt.Sprintf("127.0.0.1:%d", port), func(message T) ([]byte, error) { return fmt.Appendf(nil, "%v\n", message), nil })
}

// emit handles each word of a text: it emits "late" and "alert" to outputs, fails on "fail", and returns other words.
func emit(ctx context.Context, text string) (results []string, err error) {
	for _, word := range strings.Fields(text) {
		switch word {
		case "late":
			late.Emit(ctx, text)
		case "alert":
			alerts.Emit(ctx, len(text))
		case "stray":
			stream.NewOutput[int]("stray").Emit(ctx, 1)
		case "fail":
			return results, errors.New("told to fail")
		default:
			results = append(results, word)
		}
	}
	return results, nil
}

func emitting(outputs ...stream.Outputs) *stream.Application {
	app := stream.New("Outputs")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.FlatMap(lines, "emit", emit, outputs...)
	words.To(sinkOf[string](7002))
	if len(outputs) == 2 {
		stream.FromOutput(words, late).To(sinkOf[string](7003))
		stream.FromOutput(words, alerts).To(sinkOf[int](7004))
	}
	return app
}

func TestMessagesGoWhereTheyAreEmittedTo(t *testing.T) {
	app := wallarootest.New(t, emitting(late, alerts))
	app.Send("lines", "a late b", "alert", "c alert late alert fail", "late")
	for sink, expected := range [][]string{{"a", "b"}, {"a late b", "late"}, {"5"}} {
		if found := app.Lines(fmt.Sprint("0/sinks/", sink)); !reflect.DeepEqual(found, expected) {
			t.Errorf("sink %d got %q, expected %q", sink, found, expected)
		}
	}
	letters := app.DeadLetters()
	if len(letters) != 1 || letters[0].Code != "C501" || letters[0].Input != "c alert late alert fail" {
		t.Errorf("dead letters %+v", letters)
	}
}

func TestAnUndeclaredOutputFailsTheMessage(t *testing.T) {
	for _, test := range []struct {
		outputs []stream.Outputs
		said    string
	}{
		{[]stream.Outputs{late, alerts}, `emitted to the output "stray"; it declares "alerts", "late"`},
		{nil, `emitted to the output "stray"; it declares none`},
	} {
		app := wallarootest.New(t, emitting(test.outputs...))
		app.Send("lines", "a stray", "b")
		letters := app.DeadLetters()
		if len(letters) != 1 || letters[0].Code != "C527" || letters[0].Reason != test.said {
			t.Errorf("dead letters %+v, expected %s", letters, test.said)
		}
		if found := app.Lines("0/sinks/0"); !reflect.DeepEqual(found, []string{"b"}) {
			t.Errorf("%q went on", found)
		}
	}
}

type added struct{ Sum int }

func TestStatesAndWindowsEmit(t *testing.T) {
	app := stream.New("Outputs")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	keyed := stream.KeyBy(lines, "key", func(text string) string { return text[:1] })
	sums := stream.MapState(keyed, "sum", func(ctx context.Context, text string, s *added) (int, error) {
		s.Sum += len(text)
		alerts.Emit(ctx, s.Sum)
		if text == "a fail" {
			return 0, errors.New("told to fail")
		}
		if len(text) == 1 {
			return 0, stream.ErrSkip
		}
		return s.Sum, nil
	}, alerts)
	pairs := stream.CountWindow(stream.FromOutput(sums, alerts), stream.Count{Size: 2}, stream.Aggregation[int, int, string]{
		Name: "pair", Initial: func() int { return 0 }, Combine: func(a, b int) int { return a + b }, Update: func(in, a int) int { return a + in },
		OutputTo: func(ctx context.Context, key string, a int) (string, error) {
			late.Emit(ctx, "late "+key)
			return fmt.Sprint(key, a), nil
		}, Outputs: []stream.Outputs{late},
	})
	sums.To(sinkOf[int](7002))
	pairs.To(sinkOf[string](7003))
	stream.FromOutput(pairs, late).To(sinkOf[string](7004))
	test := wallarootest.New(t, app)
	test.Send("lines", "a", "a fail", "ab", "b")
	for sink, expected := range [][]string{{"3"}, {"a4"}, {"late a"}} {
		if found := test.Lines(fmt.Sprint("0/sinks/", sink)); !reflect.DeepEqual(found, expected) {
			t.Errorf("sink %d got %q, expected %q", sink, found, expected)
		}
	}
	if letters := test.DeadLetters(); len(letters) != 1 || letters[0].Step != "sum" || letters[0].Key != "a" {
		t.Errorf("dead letters %+v", letters)
	}
	if state := wallarootest.State[added](test, "sum", "a"); state.Sum != 3 {
		t.Errorf("the failing message is in the state: %+v", state)
	}
}

// splitting is a computation of package application that emits to outputs.
type splitting struct{}

func (splitting) Name() string           { return "splitting" }
func (s splitting) Build() interface{}   { return s }
func (splitting) Outputs() []string      { return []string{"late", "unused"} }
func (splitting) Compute(data any) []any { return given(data.(string)) }

func given(text string) (results []any) {
	for _, word := range strings.Fields(text) {
		if word == "main" {
			results = append(results, word)
		} else {
			results = append(results, wa.Output{Name: word, Value: word})
		}
	}
	return results
}

func classic() *application.Application {
	app := application.MakeApplication("Classic")
	words := app.NewPipeline("lines", application.MakeTCPSourceConfig("127.0.0.1", "7010", textDecoder{})).ToMulti(splitting{})
	words.ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", textEncoder{}))
	words.Output("late").ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7003", textEncoder{}))
	return app
}

type textDecoder struct{}

func (textDecoder) HeaderLength() uint64          { return 4 }
func (textDecoder) PayloadLength(b []byte) uint64 { return uint64(b[3]) }
func (textDecoder) Decode(b []byte) interface{}   { return string(b) }

type textEncoder struct{}

func (textEncoder) Encode(data interface{}) []byte { return []byte(data.(string) + "\n") }

// If a call emits to an undeclared output, all its emitted messages are discarded.
func TestDrawnEmissionsAreThoseOfAPlainLoop(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	names := []string{"main", "late", "unused", "main", "late", "unused", "main", "stray"}
	app := wallarootest.New(t, classic())
	var results, lates []string
	failed := 0
	for range 200 {
		words := make([]string, random.IntN(6))
		for i := range words {
			words[i] = names[random.IntN(len(names))]
		}
		app.Send("lines", strings.Join(words, " "))
		if strings.Contains(strings.Join(words, " "), "stray") {
			failed++
			continue
		}
		for _, word := range words {
			switch word {
			case "main":
				results = append(results, word)
			case "late":
				lates = append(lates, word)
			}
		}
	}
	if found := app.Lines("0/sinks/0"); !reflect.DeepEqual(found, results) {
		t.Errorf("%d results, expected %d", len(found), len(results))
	}
	if found := app.Lines("0/sinks/1"); !reflect.DeepEqual(found, lates) {
		t.Errorf("%d late, expected %d", len(found), len(lates))
	}
	if letters := app.DeadLetters(); len(letters) != failed || letters[0].Code != "C527" {
		t.Errorf("%d dead letters, expected %d", len(letters), failed)
	}
}

func TestAnOutputThatIsNotDeclaredIsFound(t *testing.T) {
	app := stream.New("Outputs")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.FlatMap(lines, "emit", emit, late, late)
	stream.FromOutput(words, alerts).To(sinkOf[int](7003))
	stream.FromOutput(lines, alerts).To(sinkOf[int](7003))
	stream.FromOutput(words, late).Done()
	stream.FromOutput(words, late)
	words.Done()
	said := fmt.Sprint(app.Check())
	for _, expected := range []string{
		`T273 step "emit" has no output "alerts"; it has "late", "late"`, `T273 this place has no output "alerts"`,
		`parameter outputs is "late" again; expected outputs with names of their own`, `T204 pipeline "Outputs" has no end`,
	} {
		if !strings.Contains(said, expected) {
			t.Errorf("%s is missing in\n%s", expected, said)
		}
	}
	classic := application.MakeApplication("Classic")
	classic.NewPipeline("lines", application.MakeTCPSourceConfig("127.0.0.1", "7010", textDecoder{})).ToMulti(splitting{}).Output("lat").Done()
	if said := classic.ToJson(); !strings.Contains(said, `T273`) || !strings.Contains(said, `has no output \"lat\"; it has \"late\", \"unused\"`) {
		t.Error(said)
	}
}

func TestAComponentOffersItsOutputs(t *testing.T) {
	library := stream.NewLibrary()
	stream.OfferFlatMap(library, "emit", emit, "string", "string", late.As("string"), alerts)
	said := library.ToJson()
	for _, expected := range []string{`"name": "late",`, `"codec": "string"`, `"name": "alerts",`, `"codec": "json"`} {
		if !strings.Contains(said, expected) {
			t.Errorf("%s is missing in\n%s", expected, said)
		}
	}
	stream.OfferFlatMap(library, "odd", emit, "string", "string", alerts.As("string"))
	if said := library.ToJson(); !strings.Contains(said, "T262") {
		t.Error(said)
	}
	app := stream.New("Uses")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	component := wa.OtherProgram("other", "other").ComputationMulti("emit", "string", "string").WithOutput("late", "string").WithOutput("alerts", "json")
	words := stream.Through[string](lines, component)
	words.To(sinkOf[string](7002))
	stream.FromOutput(words, alerts).To(sinkOf[int](7003))
	if err := app.Check(); err != nil {
		t.Fatal(err)
	}
	if document := app.ToJson(); strings.Count(document, `"component": "emit"`) != 3 || strings.Count(document, `"kind": "output"`) != 2 {
		t.Error(document)
	}
}

// TestWhatIsEmittedAfterTheReturn checks that such a message is lost and logged, and that no other message fails.
func TestWhatIsEmittedAfterTheReturn(t *testing.T) {
	var said strings.Builder
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	kept := make(chan context.Context, 1)
	app := stream.New("Outputs")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.Map(lines, "emit", func(ctx context.Context, text string) (string, error) {
		late.Emit(ctx, text)
		if text == "a" {
			kept <- ctx
		}
		return text, nil
	}, late)
	words.To(sinkOf[string](7002))
	stream.FromOutput(words, late).To(sinkOf[string](7003))
	running := wallarootest.New(t, app)
	running.Send("lines", "a")
	emitted := make(chan bool)
	go func() {
		defer close(emitted)
		late.Emit(<-kept, "too late")
	}()
	<-emitted
	running.Send("lines", "b", "c")
	if found := running.Lines("0/sinks/1"); !reflect.DeepEqual(found, []string{"a", "b", "c"}) {
		t.Errorf("%q", found)
	}
	if letters := running.DeadLetters(); len(letters) != 0 {
		t.Errorf("dead letters %+v", letters)
	}
	if !strings.Contains(said.String(), `emitted to the output "late" after the function had returned, for an earlier message (1 by now): `+
		`that is lost; a function waits for the goroutines that emit for it`) {
		t.Errorf("the log has %q", said.String())
	}
}

func TestTopicsOfOneApplicationAreNamedApart(t *testing.T) {
	topic := func(name string) stream.Sink[string] {
		return stream.KafkaSink(stream.Kafka{Topic: name, Brokers: []string{"h:1"}}, func(text string) (stream.Record, error) {
			return stream.Record{Value: []byte(text)}, nil
		})
	}
	app := stream.New("Alerts")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	lines.To(topic("alerts"), topic("totals"), sinkOf[string](7002), sinkOf[string](7003), sinkOf[string](7004).Named("Alerts-2"))
	found := app.ToJson()
	for _, name := range []string{"alerts", "totals", "Alerts", "Alerts-2", "Alerts-3"} {
		if line := fmt.Sprintf(`"name": %q,`, name); !strings.Contains(found, line) {
			t.Errorf("no sink has %s:\n%s", line, found)
		}
	}
	twice := stream.New("Alerts")
	lines = stream.From(twice, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	lines.To(sinkOf[string](7002).Named("out"), sinkOf[string](7003).Named("out"))
	if err := twice.Check(); err == nil || !strings.HasPrefix(err.Error(), `T203 sink "out" is declared twice`) {
		t.Errorf("%v", err)
	}
	alone := stream.New("Alerts")
	stream.From(alone, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)).To(topic("alerts"))
	if found := alone.ToJson(); strings.Contains(found, `"name": "alerts",`) {
		t.Errorf("a single sink has not the application's name:\n%s", found)
	}
}

func TestKeysMayHaveTypesOfTheProgram(t *testing.T) {
	type customer string
	type digest []byte
	type decade uint64
	for _, test := range []struct {
		by   func(stream.Stream[string]) stream.Stream[string]
		want string
	}{
		{func(s stream.Stream[string]) stream.Stream[string] {
			return stream.KeyBy(s, "by", func(text string) customer { return customer(text) })
		}, "ann"},
		{func(s stream.Stream[string]) stream.Stream[string] {
			return stream.KeyBy(s, "by", func(text string) digest { return digest(text) })
		}, "ann"},
		{func(s stream.Stream[string]) stream.Stream[string] {
			return stream.KeyBy(s, "by", func(text string) decade { return decade(len(text)) })
		}, "\x00\x00\x00\x00\x00\x00\x00\x03"},
	} {
		app := stream.New("Keys")
		lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
		counted := stream.MapState(test.by(lines), "count", func(_ context.Context, text string, count *added) (string, error) {
			count.Sum++
			return text, nil
		})
		counted.To(sinkOf[string](7002))
		running := wallarootest.New(t, app)
		running.Send("lines", "ann")
		if state := wallarootest.State[added](running, "count", test.want); state.Sum != 1 {
			t.Errorf("the key is not %q: %v", test.want, state)
		}
	}
}

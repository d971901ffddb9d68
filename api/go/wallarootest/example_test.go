package wallarootest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"wallarooapi/application"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// t takes the place of the *testing.T of a test. It prints failures.
var t wallarootest.T = &printer{}

// tally is the state of a word.
type tally struct{ Count int }

// counting declares an application that counts words; it fails on numbers.
func counting() *stream.Application {
	app := stream.New("Word Count")
	lines := stream.From(app, "Lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	words := stream.FlatMap(lines, "split", func(_ context.Context, line string) ([]string, error) {
		return strings.Fields(line), nil
	})
	byWord := stream.KeyBy(words, "by word", func(word string) string { return word })
	counts := stream.MapState(byWord, "count", func(_ context.Context, word string, s *tally) (string, error) {
		if word[0] >= '0' && word[0] <= '9' {
			return "", errors.New("no word")
		}
		s.Count++
		return fmt.Sprintf("%s %d", word, s.Count), nil
	})
	counts.To(stream.TCPSink("127.0.0.1:7002", func(count string) ([]byte, error) { return []byte(count + "\n"), nil }))
	return app
}

// A test runs an application on messages and looks at what its sinks got.
func Example() {
	app := wallarootest.New(t, counting())
	app.Send("Lines", "a b", "a")
	wallarootest.Equal(t, app.Lines("Word Count"), []string{"a 1", "b 1", "a 2"})
	wallarootest.Equal(t, wallarootest.State[tally](app, "count", "a"), tally{2})
	// Output:
}

// A table of cases, each with its own application.
func ExampleNew_table() {
	for _, test := range []struct {
		name string
		sent string
		want []string
	}{
		{"nothing", "", []string{}},
		{"one word", "a", []string{"a 1"}},
		{"a word twice", "a a", []string{"a 1", "a 2"}},
	} {
		// In a test: t.Run(test.name, func(t *testing.T) { ... })
		app := wallarootest.New(t, counting())
		app.Send("Lines", test.sent)
		wallarootest.Equal(t, app.Lines("Word Count"), test.want)
	}
	// Output:
}

// A wrong declaration fails the test with all findings.
func ExampleNew_findings() {
	app := stream.New("Word Count")
	stream.From(app, "Lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)).Done()
	wallarootest.New(t, app)
	// Output:
	// wallarootest: the application cannot be run
	// T204 application "Word Count" has no sink
	//   at /pipelines  (declared in example_test.go)
	//   fix: end each pipeline with to_sink or done, and at least one with to_sink (Go: To, ToSink or Done)
}

// A program for Wallaroo declares its application in ApplicationSetup, which returns a text.
func ExampleNewJSON() {
	setup := func() string {
		app := application.MakeApplication("Words")
		app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
			ToMulti(example.Split{}).
			ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
			ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
		return app.ToJson()
	}
	app := wallarootest.NewJSON(t, setup())
	app.Send("Words", "b bb", "b")
	fmt.Println(app.Keys("totals"), wallarootest.State[example.Totals](app, "totals", "b").Counts)
	// Output: [b] map[b:2 bb:1]
}

// Each seed draws another behaviour that a cluster may have. The output only has the order that a cluster promises: the
// order within each key.
func ExampleVary() {
	for seed := range uint64(20) {
		app := wallarootest.New(t, counting(), wallarootest.Vary(seed))
		app.Send("Lines", "b a a", "a b")
		var ofA []string
		for _, line := range app.Lines("Word Count") {
			if strings.HasPrefix(line, "a") {
				ofA = append(ofA, line)
			}
		}
		wallarootest.Equal(t, ofA, []string{"a 1", "a 2", "a 3"})
	}
	// Output:
}

// Records have keys and headers; messages of other types bypass the decoder.
func ExampleApp_Send() {
	type payment struct{ Amount int }
	app := stream.New("Payments")
	paid := stream.From(app, "Paid", stream.KafkaSource(stream.Kafka{Topic: "payments", Brokers: []string{"127.0.0.1:9092"}},
		stream.Value(stream.JSON[payment]().Decode)))
	sums := stream.MapState(paid, "sum", func(_ context.Context, p payment, sum *int) (int, error) {
		*sum += p.Amount
		return *sum, nil
	})
	sums.To(stream.TCPSink("127.0.0.1:7002", func(sum int) ([]byte, error) { return fmt.Appendln(nil, sum), nil }))

	run := wallarootest.New(t, app)
	run.Send("payments", stream.Record{Key: []byte("ann"), Value: []byte(`{"Amount": 3}`)})
	run.Send("payments", payment{4})
	fmt.Printf("%q %q %d\n", run.Lines("Payments"), run.Keys("sum"), wallarootest.State[int](run, "sum", "ann"))
	// Output: ["3" "4"] ["" "ann"] 3
}

// SendWire takes bytes as on the network, with the length before each message.
func ExampleApp_SendWire() {
	app := wallarootest.New(t, counting())
	app.SendWire("Lines", []byte("\x00\x00\x00\x01a\x00\x00\x00\x03b a"))
	fmt.Println(app.Lines("Word Count"))
	// Output: [a 1 b 1 a 2]
}

// Windows of time end when time passes.
func ExampleApp_Advance() {
	app := stream.New("Per Minute")
	words := stream.From(app, "Words", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	counts := stream.RangeWindow(stream.Collect(words), stream.Range{Length: time.Minute}, stream.Aggregation[string, int, string]{
		Name:    "count",
		Initial: func() int { return 0 },
		Update:  func(_ string, count int) int { return count + 1 },
		Combine: func(earlier, later int) int { return earlier + later },
		Output:  func(_ string, count int) (string, error) { return fmt.Sprint(count), nil },
	})
	counts.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))

	run := wallarootest.New(t, app)
	run.Send("Words", "a", "b")
	run.Advance(59 * time.Second)
	fmt.Println(run.Lines("Per Minute"))
	run.Advance(time.Second)
	fmt.Println(run.Lines("Per Minute"))
	fmt.Println(wallarootest.Start.Format(time.DateOnly))
	// Output:
	// []
	// [2]
	// 2026-01-01
}

// A generator makes messages when a test asks for them.
func ExampleApp_Generate() {
	app := stream.New("Numbers")
	next := func(_ context.Context, last int64) (int64, error) { return 2 * last, nil }
	powers := stream.From(app, "powers", stream.GeneratorSource(int64(1), next))
	stream.Map(powers, "print", func(_ context.Context, n int64) (string, error) { return fmt.Sprint(n), nil }).
		To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))

	run := wallarootest.New(t, app)
	run.Generate("powers", 3)
	run.Generate("powers", 2)
	fmt.Println(run.Lines("Numbers"))
	// Output: [1 2 4 8 16]
}

// The messages of a sink, before and after its encoder.
func ExampleMessages() {
	app := wallarootest.New(t, counting())
	app.Send("Lines", "a b")
	fmt.Printf("%q\n", wallarootest.Messages[string](app, "127.0.0.1:7002"))
	fmt.Printf("%q\n", app.Records("127.0.0.1:7002")[0].Value)
	// Output:
	// ["a 1" "b 1"]
	// "a 1\n"
}

// A message on which a step fails becomes a dead letter. The state of its key is not changed.
func ExampleApp_DeadLetters() {
	app := wallarootest.New(t, counting())
	app.Send("Lines", "a", "a 7 a")
	wallarootest.Equal(t, app.DeadLetters(), []wallarootest.DeadLetter{
		{Step: "count", Code: "C501", Reason: "no word", Input: "7", Key: "7", Message: 1},
	})
	fmt.Println(app.Lines("Word Count"))
	// Output: [a 1 a 2 a 3]
}

// With the policy "fail", a message on which a step fails stops the application, and no output of its micro-batch is published.
func ExampleApp_Failure() {
	app := wallarootest.New(t, counting().OnError("fail"))
	app.Send("Lines", "a")
	app.Send("Lines", "b 7")
	fmt.Println(strings.Split(app.Failure().Error(), "\n")[0], app.Lines("Word Count"))
	// Output: R611 the query stopped; C501 count: no word [a 1]
}

// Lists are shown with a mark at the first difference.
func ExampleEqual() {
	wallarootest.Equal(t, []string{"a 1", "b 1"}, []string{"a 1", "a 2"})
	// Output:
	// got 2 items; want 2; item 1 differs
	// got:
	//    "a 1"
	//  > "b 1"
	// want:
	//    "a 1"
	//  > "a 2"
}

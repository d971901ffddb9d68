package wallarootest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

func textSource() stream.Source[string] {
	return stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)
}

func textSink() stream.Sink[string] { return stream.TCPSink("127.0.0.1:7002", stream.Text.Encode) }

func TestASmallApplicationIsFast(t *testing.T) {
	begun := time.Now()
	for range 20 {
		app := wallarootest.New(t, counting())
		app.Send("Lines", "a b", "a")
		app.Lines("Word Count")
	}
	if each := time.Since(begun) / 20; each > 50*time.Millisecond {
		t.Errorf("an application took %v", each)
	}
}

func TestStepsOfOtherProgramsAreRefused(t *testing.T) {
	app := stream.New("Mixed")
	lines := stream.From(app, "Lines", textSource())
	stream.Through[string](lines, wa.OtherProgram("book", "book.py").Computation("price", "string", "string")).To(textSink())
	r := failing(func(t wallarootest.T) { wallarootest.New(t, app) })
	expectSaid(t, r, `P303 "0/steps/0": component "price" of another program (book.py) is not supported`, "fix: test the steps of each")
}

func TestWhatIsNoApplicationIsRefused(t *testing.T) {
	library := stream.NewLibrary()
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.New(t, library) }), "*stream.Library is no application")
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.NewJSON(t, "{}") }), `T201 the setup gives no application; it returned "{}"`)
	none := application.MakeApplication("none")
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.NewJSON(t, none.ToJson()) }), "the application is not declared well", "T204")
	var missing *stream.Application
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.New(t, missing) }), "is no application")
}

func TestUnknownNames(t *testing.T) {
	for _, test := range []struct {
		what string
		use  func(app *wallarootest.App)
		said string
	}{
		{"source", func(app *wallarootest.App) { app.Send("lines", "a") },
			`no source "lines"; it has "Lines" (0/sources/0, 127.0.0.1:7010)`},
		{"wire", func(app *wallarootest.App) { app.SendWire("lines", nil) }, `no source "lines"`},
		{"sink", func(app *wallarootest.App) { app.Lines("x") }, `no sink "x"; it has "Word Count" (0/sinks/0, 127.0.0.1:7002)`},
		{"state", func(app *wallarootest.App) { app.Keys("x") }, `no state "x"; it has ["count"]`},
		{"key", func(app *wallarootest.App) { wallarootest.State[tally](app, "count", "z") }, `no key "z"; it has ["a"]`},
		{"state type", func(app *wallarootest.App) { wallarootest.State[int](app, "count", "a") }, `is a *wallarootest_test.tally; expected int`},
		{"message type", func(app *wallarootest.App) { wallarootest.Messages[int](app, "Word Count") }, `of type string; expected int`},
		{"time", func(app *wallarootest.App) { app.Advance(-1) }, `time cannot go back; Advance got -1ns`},
		{"nil", func(app *wallarootest.App) { app.Send("Lines", nil) }, `source "Lines" has no message that is nil`},
		{"value", func(app *wallarootest.App) { app.Send("Lines", 1) }, `source "Lines" has messages of type string; Send got int`},
		{"record", func(app *wallarootest.App) { app.Send("Lines", stream.Record{}) }, `source "Lines" has no records`},
		{"cut", func(app *wallarootest.App) { app.SendWire("Lines", []byte("\x00\x00\x00\x01a\x00\x00\x00\x09b")) },
			`5 bytes are left after 1 messages, and the next one has 13`},
	} {
		r := failing(func(t wallarootest.T) {
			app := wallarootest.New(t, counting())
			app.Send("Lines", "a")
			test.use(app)
		})
		t.Run(test.what, func(t *testing.T) { expectSaid(t, r, test.said) })
	}
}

func TestSourcesOfOneNameAreToldApartByPathAndSinksByAddress(t *testing.T) {
	app := stream.New("Echo")
	second := stream.TCPSink("127.0.0.1:7003", func(line string) ([]byte, error) { return []byte("2 " + line), nil })
	other := stream.TCPSource("127.0.0.1:7011", stream.U32BE, stream.Text.Decode)
	stream.Merge(stream.From(app, "Lines", textSource()), stream.From(app, "Lines", other)).To(textSink(), second)
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.New(t, app).Send("Lines", "a") }), "has 2 sources", "name one by its path or address")
	run := wallarootest.New(t, app)
	run.Send("0/sources/0", "a")
	wallarootest.Equal(t, run.Lines("0/sinks/0"), []string{"a"})
	wallarootest.Equal(t, run.Lines("127.0.0.1:7003"), run.Lines("Echo-2"))
	wallarootest.Equal(t, run.Lines("Echo-2"), []string{"2 a"})
}

func TestDeadLettersThatNobodyLooksAtFailATest(t *testing.T) {
	r := failing(func(t wallarootest.T) { wallarootest.New(t, counting()).Send("Lines", "a 7") })
	expectSaid(t, r, "dead letters (a test that expects them calls DeadLetters):\nC501 count: no word; got 7")
	r = failing(func(t wallarootest.T) { wallarootest.New(t, counting(), wallarootest.Vary(2)).Send("Lines", "7") })
	expectSaid(t, r, "no word")
	r = failing(func(t wallarootest.T) {
		app := wallarootest.New(t, counting())
		app.Send("Lines", "7")
		app.DeadLetters()
	})
	if r.Failed() {
		t.Error(r.said)
	}
	r = failing(func(t wallarootest.T) {
		app := wallarootest.New(t, counting())
		app.Send("Lines", "7")
		wallarootest.Equal(t, app.DeadLetters(), nil)
	})
	wallarootest.Equal(t, len(r.said), 1)
	wallarootest.Equal(t, len(r.logged), 1) // the letters that a failed test shows
}

func TestDeadLettersOfMessagesWithPointersAreTheSameInEachRun(t *testing.T) {
	type payment struct{ User string }
	type checked struct {
		Payment *payment
		Rule    any
		loop    map[string]any
	}
	for range 2 {
		app := stream.New("Payments")
		words := stream.From(app, "Lines", textSource())
		payments := stream.Map(words, "check", func(_ context.Context, word string) (*checked, error) {
			loop := map[string]any{}
			loop["loop"] = loop
			return &checked{&payment{word}, (*payment)(nil), loop}, nil
		})
		fail := func(context.Context, *checked) (string, error) { return "", errors.New("no") }
		stream.Map(payments, "pay", fail).To(textSink())
		run := wallarootest.New(t, app)
		run.Send("Lines", "ann")
		input := run.DeadLetters()[0].Input
		if want := `{"Payment":{"User":"ann"},"Rule":null,"loop":{"loop":`; !strings.HasPrefix(input, want) {
			t.Errorf("the message is shown as %s; want %s...", input, want)
		}
	}
}

func TestAnApplicationThatHasStopped(t *testing.T) {
	declare := func() *stream.Application {
		app := stream.New("Words")
		words := stream.From(app, "Lines", textSource())
		fail := func(_ context.Context, word string) (string, error) { return "", fmt.Errorf("no %s", word) }
		stream.Map(words, "lenient", fail).OnError("dead_letter").Done()
		stream.Map(words, "strict", fail).To(textSink())
		return app.OnError("fail")
	}
	r := failing(func(t wallarootest.T) { wallarootest.New(t, declare()).Send("Lines", "a") })
	expectSaid(t, r, "did not call Failure", "R611", "C501 strict: no a")
	r = failing(func(t wallarootest.T) {
		app := wallarootest.New(t, declare())
		app.Send("Lines", "a")
		app.Send("Lines", "b")
	})
	expectSaid(t, r, "Send: the application has stopped")
	app := wallarootest.New(t, declare())
	wallarootest.Equal(t, app.Failure(), nil)
	app.Send("Lines", "a")
	if app.Failure() == nil || len(app.DeadLetters()) > 0 {
		t.Errorf("it goes on: %v", app.DeadLetters())
	}
}

func TestAChangeThatIsNotPersistedIsADeadLetter(t *testing.T) {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToStatePartition(forgetful{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	run := wallarootest.New(t, app)
	run.Send("Words", "a")
	letters := run.DeadLetters()
	if len(letters) != 1 || letters[0].Code != "C510" || len(run.Keys("totals")) > 0 {
		t.Errorf("%v, keys %v", letters, run.Keys("totals"))
	}
}

// forgetful is a state computation that counts, but does not request that the count is persisted.
type forgetful struct{ example.CountWords }

func (f forgetful) Compute(data, state interface{}) (interface{}, bool) {
	count, _ := f.CountWords.Compute(data, state)
	return count, false
}

func TestAGeneratorsMessages(t *testing.T) {
	app := stream.New("Numbers")
	numbers := stream.From(app, "numbers", stream.GeneratorSource("x", func(_ context.Context, last string) (string, error) {
		return last + "x", nil
	}))
	numbers.To(textSink())
	run := wallarootest.New(t, app)
	run.Send("numbers", "x", "xx")
	wallarootest.Equal(t, run.Lines("Numbers"), []string{"x", "xx"})
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.New(t, counting()).Generate("Lines", 1) }), "is not a generator; use Send")
	failed := stream.New("Fails")
	fails := stream.GeneratorSource("x", func(_ context.Context, last string) (string, error) { return "", fmt.Errorf("no more than %s", last) })
	stream.From(failed, "numbers", fails).To(textSink())
	expectSaid(t, failing(func(t wallarootest.T) { wallarootest.New(t, failed).Generate("numbers", 2) }), "C501 numbers: no more than x")
}

func TestAGeneratorGoesOnWhereItWas(t *testing.T) {
	type number struct{ N int }
	next := func(_ context.Context, last number) (number, error) {
		if last.N == 9 {
			return number{}, stream.ErrEnd
		}
		return number{last.N + 1}, nil
	}
	app := stream.New("Numbers")
	stream.From(app, "numbers", stream.GeneratorSource(number{}, next)).
		To(stream.TCPSink("127.0.0.1:7002", func(n number) ([]byte, error) { return fmt.Append(nil, n.N), nil }))
	for seed := range uint64(20) {
		run := wallarootest.New(t, app, wallarootest.Vary(seed))
		for count := range 8 {
			run.Generate("numbers", count)
		}
		wallarootest.Equal(t, run.Lines("Numbers"), []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
	}
}

func TestRecords(t *testing.T) {
	app := stream.New("Records")
	topic := stream.Kafka{Topic: "in", Brokers: []string{"127.0.0.1:9092"}}
	records := stream.From(app, "in", stream.KafkaSource(topic, func(r stream.Record) (string, error) {
		return fmt.Sprintf("%s %s %t %v %v", r.Key, r.Value, r.Value == nil, r.Time.Sub(wallarootest.Start), r.Headers), nil
	}))
	partition := int32(3)
	records.To(stream.KafkaSink(stream.Kafka{Topic: "out", Brokers: topic.Brokers}, func(text string) (stream.Record, error) {
		return stream.Record{Key: []byte("k"), Value: []byte(text), Partition: &partition}, nil
	}))
	run := wallarootest.New(t, app)
	run.Advance(time.Second)
	headers := []stream.Header{{Name: "one", Value: []byte{1}}, {Name: "two", Value: nil}}
	run.Send("in", stream.Record{Key: []byte("a"), Value: []byte("x"), Headers: headers},
		stream.Record{Time: wallarootest.Start.Add(time.Minute)}, "text")
	wallarootest.Equal(t, run.Lines("out"), []string{"a x false 1s [{one [1]} {two []}]", "  true 1m0s []", " text false 1s []"})
	first := run.Records("out")[0]
	if string(first.Key) != "k" || first.Partition == nil || *first.Partition != 3 {
		t.Errorf("%+v", first)
	}
}

func TestUserCodeMayEndTheTest(t *testing.T) {
	app := stream.New("Ends")
	stream.Map(stream.From(app, "Lines", textSource()), "ends", func(_ context.Context, line string) (string, error) {
		runtime.Goexit() // as t.FailNow does
		return line, nil
	}).To(textSink())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		wallarootest.New(&printer{}, app).Send("Lines", "a")
		t.Error("the goroutine goes on")
	}()
	<-ended
}

func TestKeysThatAreNumbers(t *testing.T) {
	app := stream.New("Sums")
	numbers := stream.From(app, "numbers", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Int64.Decode))
	byDecade := stream.KeyBy(numbers, "decade", func(n int64) uint64 { return uint64(n) / 10 })
	stream.MapState(byDecade, "sum", func(_ context.Context, n int64, sum *int64) (string, error) {
		*sum += n
		return fmt.Sprint(*sum), nil
	}).To(textSink())
	run := wallarootest.New(t, app)
	run.Send("numbers", int64(21), int64(1), binary.BigEndian.AppendUint64(nil, 22), int64(5))
	wallarootest.Equal(t, run.Lines("Sums"), []string{"21", "1", "43", "6"})
	wallarootest.Equal(t, wallarootest.State[int64](run, "sum", uint64(2)), 43)
	wallarootest.Equal(t, *wallarootest.State[*int64](run, "sum", []byte{0, 0, 0, 0, 0, 0, 0, 2}), 43)
}

type (
	shop   string
	digest []byte
	year   uint64
)

func TestKeysOfNamedTypes(t *testing.T) {
	checkKeys(t, func(text string) shop { return shop(text) })
	checkKeys(t, func(text string) digest { return digest(text) })
	checkKeys(t, func(text string) year { return year(len(text)) })
}

// checkKeys checks that State finds the state of each key that a function returns.
func checkKeys[K stream.Key](t *testing.T, key func(text string) K) {
	t.Helper()
	app := stream.New("Last")
	texts := stream.From(app, "texts", textSource())
	stream.MapState(stream.KeyBy(texts, "key", key), "last", func(_ context.Context, text string, last *string) (string, error) {
		*last = text
		return text, nil
	}).To(textSink())
	run := wallarootest.New(t, app)
	for _, text := range []string{"", "a", "\x00ö", strings.Repeat("b", 1000)} {
		run.Send("texts", text)
		wallarootest.Equal(t, wallarootest.State[string](run, "last", key(text)), text)
	}
}

func TestAStateOutlivesItsLogsCompaction(t *testing.T) {
	run := wallarootest.New(t, counting())
	for range 100 {
		run.Send("Lines", "a b")
	}
	wallarootest.Equal(t, wallarootest.State[tally](run, "count", "a"), tally{100})
	wallarootest.Equal(t, len(run.Lines("Word Count")), 200)
}

func TestOutputsComeInTheOrderOfTheirSourceMessages(t *testing.T) {
	app := stream.New("Both")
	words := stream.From(app, "Lines", textSource())
	byWord := stream.KeyBy(words, "word", func(word string) string { return word })
	counts := stream.MapState(byWord, "count", func(_ context.Context, word string, n *int) (string, error) {
		*n++
		return fmt.Sprint(word, *n), nil
	})
	stream.Merge(byWord, counts).To(textSink())
	run := wallarootest.New(t, app)
	run.Send("Lines", "a", "b", "a")
	wallarootest.Equal(t, run.Lines("Both"), []string{"a", "a1", "b", "b1", "a", "a2"})
}

func TestWindowsAfterWindowsSeeTheTimeAtWhichTheFirstOnesEnd(t *testing.T) {
	summing := func(name string) stream.Aggregation[int64, int64, int64] {
		return stream.Aggregation[int64, int64, int64]{
			Name:    name,
			Initial: func() int64 { return 0 },
			Update:  func(n, sum int64) int64 { return sum + n },
			Combine: func(earlier, later int64) int64 { return earlier + later },
			Output:  func(_ string, sum int64) (int64, error) { return sum, nil },
		}
	}
	app := stream.New("Sums")
	numbers := stream.From(app, "numbers", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Int64.Decode))
	short := stream.RangeWindow(stream.Collect(numbers), stream.Range{Length: 2 * time.Second}, summing("short"))
	long := stream.RangeWindow(stream.Collect(short), stream.Range{Length: 4 * time.Second}, summing("long"))
	long.To(stream.TCPSink("127.0.0.1:7002", func(sum int64) ([]byte, error) { return fmt.Append(nil, sum), nil }))
	run := wallarootest.New(t, app)
	run.Send("numbers", int64(1)) // the first short window emits it after 2 s, so the first long window after 6 s
	run.Advance(5999 * time.Millisecond)
	wallarootest.Equal(t, run.Lines("Sums"), []string{})
	run.Advance(time.Millisecond)
	wallarootest.Equal(t, run.Lines("Sums"), []string{"1"})
	run = wallarootest.New(t, app)
	run.Send("numbers", int64(1))
	run.Advance(6 * time.Second)
	wallarootest.Equal(t, run.Lines("Sums"), []string{"1"})
}

func TestAMessageThatJoinsSessionsFailsWithCombine(t *testing.T) {
	app := stream.New("Apart")
	texts := stream.From(app, "texts", stream.ConnectorSource("127.0.0.1:7100", stream.Connector{}, stream.Value(stream.Text.Decode)))
	apart := stream.SessionWindow(stream.Collect(texts), stream.Session{Gap: 10 * time.Second, Delay: 20 * time.Second}, stream.Aggregation[string, string, string]{
		Name:    "apart",
		Initial: func() string { return "" },
		Update:  func(text, texts string) string { return texts + text },
		Combine: func(earlier, later string) string { panic(earlier + " and " + later) },
		Output:  func(_ string, texts string) (string, error) { return texts, nil },
	})
	apart.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	run := wallarootest.New(t, app)
	for i, text := range []string{"a", "b", "x", "c"} {
		second := []int{0, 12, 6, 60}[i]
		run.Send("texts", stream.Record{Key: []byte("k"), Value: []byte(text), Time: wallarootest.Start.Add(time.Duration(second) * time.Second)})
	}
	wallarootest.Equal(t, run.Lines("Apart"), []string{"a", "b"})
	letters := run.DeadLetters()
	if len(letters) != 1 || letters[0].Code != "C501" || !strings.Contains(letters[0].Reason, "a and b") {
		t.Errorf("dead letters %+v", letters)
	}
}

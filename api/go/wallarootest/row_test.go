package wallarootest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

type moment struct {
	At    time.Time
	Names []string
}

func moments() *stream.Application {
	app := stream.New("Moments")
	in := stream.Spark{Format: "dataframe", Key: "Names[0]"}
	all := stream.From(app, "in", stream.SparkRowSource[moment](in)).To(stream.DataFrameSink[moment]().Named("out"))
	stream.MapState(all, "seen", func(_ context.Context, _ moment, seen *int) (int, error) {
		*seen++
		return *seen, nil
	}).Done()
	return app
}

func TestRowsAreSentAsSparkGivesThem(t *testing.T) {
	app := wallarootest.New(t, moments())
	east := time.FixedZone("", 60*60)
	app.Send("in", moment{At: time.Date(2026, 1, 31, 1, 0, 0, 1234, east)},
		stream.Record{Key: []byte("a"), Value: []byte(`{"At": "2026-01-31T00:00:00Z", "Names": ["a"]}`)})
	midnight := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	want := []moment{{midnight.Add(time.Microsecond), []string{}}, {midnight, []string{"a"}}}
	wallarootest.Equal(t, wallarootest.Messages[moment](app, "out"), want)
	wallarootest.Equal(t, app.Keys("seen"), []string{"", "a"})
}

type sold struct {
	Amount int
	At     *time.Time
}

type soldOn struct {
	Amount int
	At     time.Time `spark:"DATE"`
}

func sums[S any](length time.Duration, amount func(S) int) *stream.Application {
	app := stream.New("Sales")
	rows := stream.From(app, "in", stream.DataFrameSource[S]().Timestamp("at"))
	amounts := stream.Aggregation[S, int, int]{
		Name: "amounts", Update: func(s S, sum int) int { return sum + amount(s) }, Combine: func(a, b int) int { return a + b },
		Initial: func() int { return 0 }, Output: func(_ string, sum int) (int, error) { return sum, nil },
	}
	keyed := stream.KeyBy(rows, "one", func(S) string { return "" })
	sums := stream.RangeWindow(keyed, stream.Range{Length: length}, amounts)
	stream.Map(sums, "total", func(_ context.Context, sum int) (total, error) { return total{sum}, nil }).
		To(stream.DataFrameSink[total]().Named("out"))
	return app
}

type total struct{ Amount int }

func TestRowsHaveTheTimeOfTheirColumn(t *testing.T) {
	app := wallarootest.New(t, sums(time.Hour, func(s sold) int { return s.Amount }))
	at := func(minutes int) *time.Time {
		moment := time.Date(2026, 1, 31, 0, minutes, 0, 0, time.UTC)
		return &moment
	}
	app.Send("in", sold{1, at(0)}, sold{2, at(59)}, stream.Record{Value: []byte(`{"Amount": 4, "At": "2026-01-31T01:00:00Z"}`)})
	wallarootest.Equal(t, wallarootest.Messages[total](app, "out"), []total{{3}})
	app.Send("in", sold{8, nil}, `{"Amount": 16, "At": "2026-01-31T02:00:00Z"}`)
	wallarootest.Equal(t, wallarootest.Messages[total](app, "out"), []total{{3}, {4}})
	wallarootest.Equal(t, app.DeadLetters()[0].Code, "C523")
}

func timeOf[S any](t wallarootest.T, column string) string {
	app := stream.New("Times")
	rows := stream.KeyBy(stream.From(app, "in", stream.DataFrameSource[S]().Timestamp("at")), "one", func(S) string { return "" })
	stream.MapState(rows, "now", func(ctx context.Context, _ S, _ *int) (string, error) {
		return fmt.Sprint(stream.Now(ctx).UnixMilli()), nil
	}, stream.TTL(time.Hour)).To(textSink())
	tested := wallarootest.New(t, app)
	tested.Send("in", `{"At": `+column+`}`)
	return strings.Join(tested.Lines("Times"), "")
}

// TestTheTimeOfARowIsThatOfSpark has the same cases as runtime/tests/test_memory_row.py.
func TestTheTimeOfARowIsThatOfSpark(t *testing.T) {
	type whole struct{ At int64 }
	type text struct{ At string }
	noon := fmt.Sprint(1_769_860_800_000)
	wallarootest.Equal(t, timeOf[whole](t, "7"), "7")
	for column, want := range map[string]string{
		"2026-01-31T12:00:00Z": noon, "2026-01-31T12:00:00.000123Z": noon, "2026-01-31T14:00:00+02:00": noon,
		"2026-01-31T12:00:00": noon, "2026-01-31 12:00:00": noon, "2026-01-31": "1769817600000",
	} {
		wallarootest.Equal(t, timeOf[text](t, `"`+column+`"`), want)
	}
	for _, column := range []string{"7.5", "7.0", "true", "9223372036854775808", "[7]", `"soon"`, `""`, `"2026-13-31"`} {
		said := failing(func(t wallarootest.T) { timeOf[whole](t, column) })
		expectSaid(t, said, `wallarootest: source "in": column At is `+column+`; expected a TIMESTAMP, a DATE or an integer of milliseconds`)
	}
}

func TestATimeThatOnlySparkEvaluatesIsAskedFor(t *testing.T) {
	begin := func(t wallarootest.T) *wallarootest.App {
		app := stream.New("Times")
		rows := stream.From(app, "in", stream.DataFrameSource[total]().Timestamp("to_timestamp(day)"))
		stream.Map(rows, "show", func(_ context.Context, t total) (string, error) { return fmt.Sprint(t.Amount), nil }).To(textSink())
		return wallarootest.New(t, app)
	}
	for _, row := range []any{total{1}, `{"Amount": 1}`, stream.Record{Value: []byte(`{"Amount": 1}`)}} {
		expectSaid(t, failing(func(t wallarootest.T) { begin(t).Send("in", row) }),
			`source "in": the time of a row is the SQL "to_timestamp(day)", which only Spark evaluates; send a stream.Record with a time`)
	}
	app := begin(t)
	app.Send("in", stream.Record{Value: []byte(`{"Amount": 1}`), Time: wallarootest.Start}, "{")
	wallarootest.Equal(t, app.Lines("Times"), []string{"1"})
	wallarootest.Equal(t, app.DeadLetters()[0].Code, "C505")
}

func TestADateIsATime(t *testing.T) {
	app := wallarootest.New(t, sums(24*time.Hour, func(s soldOn) int { return s.Amount }))
	on := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	app.Send("in", soldOn{1, on(1)}, soldOn{2, on(1)}, soldOn{4, on(2)})
	wallarootest.Equal(t, wallarootest.Messages[total](app, "out"), []total{{3}})
	app.Send("in", soldOn{8, on(3)})
	wallarootest.Equal(t, wallarootest.Messages[total](app, "out"), []total{{3}, {4}})
}

func TestARowThatSparkCannotGive(t *testing.T) {
	failed := failing(func(t wallarootest.T) {
		wallarootest.New(t, moments()).Send("in", moment{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	})
	expectSaid(t, failed, `wallarootest: source "in": column At is 10000-01-01T00:00:00Z; expected a TIMESTAMP in the years 1 to 9999`)
}

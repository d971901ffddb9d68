package wallarootest_test

import (
	"context"
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

func TestARowThatSparkCannotGive(t *testing.T) {
	failed := failing(func(t wallarootest.T) {
		wallarootest.New(t, moments()).Send("in", moment{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	})
	expectSaid(t, failed, `wallarootest: source "in": column At is 10000-01-01T00:00:00Z; expected a TIMESTAMP in the years 1 to 9999`)
}

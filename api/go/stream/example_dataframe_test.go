package stream_test

import (
	"context"
	"encoding/json"
	"time"

	"wallarooapi/internal/testdata/example"
	"wallarooapi/stream"
)

type payment struct {
	User   string      `json:"user"`
	Amount json.Number `json:"amount" spark:"DECIMAL(10,2)"`
	Note   *string     `json:"note"`
	At     time.Time   `json:"at"`
	Tags   []string    `json:"tags"`
}

type paidDay struct {
	User string    `json:"user"`
	Day  time.Time `json:"day" spark:"DATE"`
}

type count struct {
	User  string `json:"user"`
	Times int64  `json:"times"`
}

func dayOf(_ context.Context, p payment) (paidDay, error) {
	return paidDay{p.User, p.At.Truncate(24 * time.Hour)}, nil
}

// A PySpark job passes a DataFrame with the columns of payment, and gets one with the columns of paidDay:
// load("./app").apply(payments=df)["days"].
func ExampleDataFrameSource() {
	app := stream.New("Days")
	payments := stream.From(app, "payments", stream.DataFrameSource[payment]())
	stream.Map(payments, "day", dayOf).To(stream.DataFrameSink[paidDay]().Named("days"))
	example.Show(app.ToJson(), "sources", "name", "format", "schema")
	example.Show(app.ToJson(), "sinks", "name", "format", "schema")
	// Output:
	// payments dataframe user STRING NOT NULL, amount DECIMAL(10,2) NOT NULL, note STRING, at TIMESTAMP NOT NULL, tags ARRAY<STRING> NOT NULL
	// days dataframe user STRING NOT NULL, day DATE NOT NULL
}

// Windows use the time in the column that Timestamp names.
func ExampleSource_Timestamp() {
	app := stream.New("Spent")
	payments := stream.From(app, "payments", stream.DataFrameSource[payment]().Timestamp("at"))
	byUser := stream.KeyBy(payments, "by user", func(p payment) string { return p.User })
	stream.RangeWindow(byUser, stream.Range{Length: 24 * time.Hour}, stream.Aggregation[payment, int64, count]{
		Name:    "payments of a day",
		Initial: func() int64 { return 0 },
		Update:  func(_ payment, times int64) int64 { return times + 1 },
		Combine: func(earlier, later int64) int64 { return earlier + later },
		Output:  func(user string, times int64) (count, error) { return count{user, times}, nil },
	}).To(stream.DataFrameSink[count]())
	example.Show(app.ToJson(), "sources", "timestamp")
	// Output:
	// at
}

// Fields whose types Spark does not have are reported.
func ExampleDataFrameSink() {
	type total struct {
		User  string
		Count uint64
		done  chan bool
	}
	app := stream.New("Totals")
	totals := stream.Map(stream.From(app, "payments", stream.DataFrameSource[payment]()), "total",
		func(_ context.Context, p payment) (total, error) { return total{p.User, 1, nil}, nil })
	totals.To(stream.DataFrameSink[total]().Named("totals"))
	example.Show(app.ToJson(), "sinks")
	// Output:
	// T207 DataFrameSink: parameter total.done is not exported; expected an exported field; fix: export it, or leave it out with the tag `json:"-"`
	// T207 DataFrameSink: parameter total.Count is uint64; expected a type that a column can have; fix: use int64, or json.Number with the tag `spark:"DECIMAL(20,0)"`
}

// Rows of files have a key and a time if the fields Key and Timestamp name their columns.
func ExampleSparkRowSource() {
	in := stream.Spark{Format: "parquet", Options: map[string]string{"path": "payments"}, Key: "user", Timestamp: "at"}
	app := stream.New("Days")
	payments := stream.From(app, "payments", stream.SparkRowSource[payment](in))
	out := stream.Spark{Format: "json", Options: map[string]string{"path": "days"}, Value: "user, year(day) AS year"}
	stream.Map(payments, "day", dayOf).To(stream.SparkRowSink[paidDay](out))
	example.Show(app.ToJson(), "sources", "format", "value", "key", "timestamp")
	example.Show(app.ToJson(), "sinks", "format", "schema", "value")
	// Output:
	// parquet * user at
	// json user STRING NOT NULL, day DATE NOT NULL user, year(day) AS year
}

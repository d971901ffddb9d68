package wallarootest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// Sessions of clicks, by the time in the data: a late click joins two sessions.
func ExampleApp_Advance_sessions() {
	app := stream.New("Sessions")
	decode := func(line []byte) (string, error) { return strings.Fields(string(line))[1], nil }
	source := stream.TCPSource("127.0.0.1:7010", stream.Newline, decode).EventTime(func(line []byte) time.Time {
		seconds, _ := strconv.ParseInt(strings.Fields(string(line))[0], 10, 64)
		return time.Unix(seconds, 0)
	})
	clicks := stream.KeyBy(stream.From(app, "clicks", source), "user", func(name string) string { return name })
	visits := stream.SessionWindow(clicks, stream.Session{Gap: 30 * time.Second, Delay: 20 * time.Second}, stream.Aggregation[string, int, string]{
		Name:    "visit",
		Initial: func() int { return 0 },
		Update:  func(_ string, clicks int) int { return clicks + 1 },
		Combine: func(earlier, later int) int { return earlier + later },
		OutputTo: func(ctx context.Context, user string, clicks int) (string, error) {
			start, end := stream.WindowBounds(ctx)
			return fmt.Sprintf("%s %d to %d: %d", user, start.Unix(), end.Unix(), clicks), nil
		},
	})
	visits.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))

	run := wallarootest.New(t, app)
	run.Send("clicks", "100 ann", "110 bob", "120 ann", "160 ann", "140 ann", "230 ann", "150 ann")
	run.Advance(0)
	run.Advance(50 * time.Second)
	for _, line := range run.Lines("Sessions") {
		fmt.Println(line)
	}
	// Unordered output:
	// ann 100 to 190: 4
	// ann 230 to 260: 1
	// bob 110 to 140: 1
}

package stream_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// exampleT takes the place of the *testing.T of a test.
type exampleT struct{ wallarootest.T }

func (exampleT) Helper()                           {}
func (exampleT) Cleanup(func())                    {}
func (exampleT) Failed() bool                      { return false }
func (exampleT) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// byUser returns an application with a stream of clicks, such as "ann shop". Their keys are the users.
func byUser() (*stream.Application, stream.Stream[string]) {
	app := stream.New("Clicks")
	clicks := stream.From(app, "clicks", textSource)
	return app, stream.KeyBy(clicks, "by user", func(click string) string { return strings.Fields(click)[0] })
}

// A session of a user ends five minutes after the last click.
func ExampleOnTimer() {
	app, clicks := byUser()
	sessions := stream.MapState(clicks, "session", func(ctx context.Context, click string, pages *[]string) (string, error) {
		*pages = append(*pages, strings.Fields(click)[1])
		stream.SetTimerAfter(ctx, "close", 5*time.Minute)
		return "", stream.ErrSkip
	})
	stream.OnTimer(sessions, "close", func(_ context.Context, timer *stream.Timer, pages *[]string) (string, error) {
		timer.DeleteState()
		return fmt.Sprint(string(timer.Key), *pages, timer.At.UTC().Format(time.TimeOnly)), nil
	})
	sessions.To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann home", "bob home")
	run.Advance(4 * time.Minute)
	run.Send("clicks", "ann shop")
	run.Advance(time.Hour)
	fmt.Println(strings.Join(run.Lines("Clicks"), "\n"))
	// Output:
	// bob[home]00:05:00
	// ann[home shop]00:09:00
}

func ExampleOnTimerFlat() {
	app, clicks := byUser()
	sessions := stream.FlatMapState(clicks, "session", func(ctx context.Context, click string, pages *[]string) ([]string, error) {
		*pages = append(*pages, strings.Fields(click)[1])
		stream.SetTimerAfter(ctx, "close", 5*time.Minute)
		return nil, nil
	})
	var closed = func(_ context.Context, timer *stream.Timer, pages *[]string) ([]string, error) {
		timer.DeleteState()
		return *pages, nil
	}
	stream.OnTimerFlat(sessions, "close", closed).To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann home", "ann shop")
	run.Advance(5 * time.Minute)
	fmt.Println(run.Lines("Clicks"))
	// Output: [home shop]
}

// The count of a user's clicks is deleted after an hour without a click.
func ExampleTTL() {
	app, clicks := byUser()
	counts := stream.MapState(clicks, "count", func(_ context.Context, click string, count *int) (string, error) {
		*count++
		return fmt.Sprint(click, " ", *count), nil
	}, stream.TTL(time.Hour))
	counts.To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann home", "ann shop")
	run.Advance(time.Hour)
	fmt.Println(run.Keys("count"))
	run.Send("clicks", "ann home")
	fmt.Println(run.Lines("Clicks"))
	// Output:
	// []
	// [ann home 1 ann shop 2 ann home 1]
}

// Each user gets a report at midnight.
func ExampleSetTimer() {
	app, clicks := byUser()
	counts := stream.MapState(clicks, "count", func(ctx context.Context, click string, count *int) (string, error) {
		*count++
		stream.SetTimer(ctx, "midnight", stream.Now(ctx).UTC().Truncate(24*time.Hour).Add(24*time.Hour))
		return "", stream.ErrSkip
	})
	stream.OnTimer(counts, "midnight", func(_ context.Context, timer *stream.Timer, count *int) (string, error) {
		return fmt.Sprintf("%s %s: %d", timer.At.UTC().Format(time.DateTime), timer.Key, *count), nil
	}).To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann home", "ann shop")
	run.Advance(24 * time.Hour)
	fmt.Println(run.Lines("Clicks"))
	// Output: [2026-01-02 00:00:00 ann: 2]
}

// The function of the timer sets the timer again, so each user is reminded once a day.
func ExampleSetTimerAfter() {
	app, clicks := byUser()
	users := stream.MapState(clicks, "remind", func(ctx context.Context, click string, days *int) (string, error) {
		stream.SetTimerAfter(ctx, "again", 24*time.Hour)
		return "", stream.ErrSkip
	})
	stream.OnTimer(users, "again", func(ctx context.Context, timer *stream.Timer, days *int) (string, error) {
		*days++
		stream.SetTimerAfter(ctx, timer.Name, 24*time.Hour)
		return fmt.Sprintf("%s, %d days", timer.Key, *days), nil
	}).To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann home")
	run.Advance(72 * time.Hour)
	fmt.Println(run.Lines("Clicks"))
	// Output: [ann, 1 days ann, 2 days ann, 3 days]
}

// An order that is not paid within a minute is reported.
func ExampleDeleteTimer() {
	app, events := byUser()
	orders := stream.MapState(events, "order", func(ctx context.Context, event string, _ *struct{}) (string, error) {
		if strings.HasSuffix(event, "paid") {
			stream.DeleteTimer(ctx, "due")
		} else {
			stream.SetTimerAfter(ctx, "due", time.Minute)
		}
		return "", stream.ErrSkip
	}, stream.TTL(time.Hour))
	stream.OnTimer(orders, "due", func(_ context.Context, timer *stream.Timer, _ *struct{}) (string, error) {
		return string(timer.Key) + " has not paid", nil
	}).To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann orders", "bob orders", "ann paid")
	run.Advance(time.Minute)
	fmt.Println(run.Lines("Clicks"))
	// Output: [bob has not paid]
}

func ExampleNow() {
	app, clicks := byUser()
	stream.MapState(clicks, "first", func(ctx context.Context, click string, first *time.Time) (string, error) {
		if first.IsZero() {
			*first = stream.Now(ctx)
		}
		return fmt.Sprint(click, " ", stream.Now(ctx).Sub(*first)), nil
	}, stream.TTL(time.Hour)).To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("clicks", "ann home")
	run.Advance(time.Minute)
	run.Send("clicks", "ann shop")
	fmt.Println(run.Lines("Clicks"))
	// Output: [ann home 0s ann shop 1m0s]
}

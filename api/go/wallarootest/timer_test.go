package wallarootest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// ordering declares an application whose messages are commands "KEY COMMAND", such as "close N", which sets a timer N
// seconds later.
func ordering(isEvent bool, options ...stream.StateOption) *stream.Application {
	app := stream.New("Orders")
	source := textSource()
	if isEvent {
		topic := stream.Kafka{Topic: "Lines", Brokers: []string{"127.0.0.1:9092"}}
		source = stream.KafkaSource(topic, func(r stream.Record) (string, error) { return string(r.Value), nil })
	}
	lines := stream.KeyBy(stream.From(app, "Lines", source), "by key", func(line string) string { return line[:1] })
	orders := stream.MapState(lines, "order", func(ctx context.Context, line string, seen *[]string) (string, error) {
		command, number := line[2:], 0
		*seen = append(*seen, command)
		if name, seconds, is := strings.Cut(command, " "); is {
			command = name
			if _, err := fmt.Sscan(seconds, &number); err != nil {
				return "", err
			}
		}
		switch command {
		case "close", "again", "poll", "strange":
			stream.SetTimerAfter(ctx, command, time.Duration(number)*time.Second)
		case "far":
			stream.SetTimer(ctx, "close", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
		case "delete":
			stream.DeleteTimer(ctx, "close")
		case "fail":
			stream.SetTimerAfter(ctx, "close", time.Second)
			return "", errors.New("asked to fail")
		}
		return "", stream.ErrSkip
	}, options...)
	show := func(timer *stream.Timer, seen *[]string) string {
		return fmt.Sprintf("%s %s %v %s", timer.Key, timer.Name, timer.At.Sub(wallarootest.Start), strings.Join(*seen, ","))
	}
	stream.OnTimer(orders, "close", func(_ context.Context, timer *stream.Timer, seen *[]string) (string, error) {
		timer.DeleteState()
		return show(timer, seen), nil
	})
	stream.OnTimer(orders, "again", func(ctx context.Context, timer *stream.Timer, seen *[]string) (string, error) {
		stream.SetTimerAfter(ctx, "again", time.Second)
		return show(timer, seen), nil
	})
	stream.OnTimer(orders, "poll", func(ctx context.Context, timer *stream.Timer, seen *[]string) (string, error) {
		stream.SetTimerAfter(ctx, "poll", 0)
		return "", stream.ErrSkip
	})
	stream.OnVisit(orders, "forget", func(ctx context.Context, visit *stream.Visit, seen *[]string) (string, error) {
		visit.DeleteState()
		return "", stream.ErrSkip
	})
	orders.To(textSink())
	return app
}

func TestTimersFireWhenTimePasses(t *testing.T) {
	for _, isEvent := range []bool{false, true} {
		app := wallarootest.New(t, ordering(isEvent))
		app.Send("Lines", "a close 5", "b close 5", "c close 5", "b delete")
		app.Visit("forget", nil)
		app.Send("Lines", "a close 5", "b close 5", "b close 7", "c close 5", "c delete")
		app.Advance(4999 * time.Millisecond)
		wallarootest.Equal(t, len(app.Lines("Orders")), 0)
		app.Advance(time.Millisecond)
		wallarootest.Equal(t, app.Lines("Orders"), []string{"a close 5s close 5"})
		app.Advance(2 * time.Second)
		wallarootest.Equal(t, app.Lines("Orders")[1:], []string{"b close 7s close 5,close 7"})
		wallarootest.Equal(t, app.Keys("order"), []string{"c"})
	}
}

func TestATimerThatIsSetAgainFiresAsOftenAsThereIsTime(t *testing.T) {
	for _, isEvent := range []bool{false, true} {
		app := wallarootest.New(t, ordering(isEvent))
		app.Send("Lines", "a again 1")
		app.Advance(20 * time.Minute)
		lines := app.Lines("Orders")
		if len(lines) != 1200 || lines[1199] != "a again 20m0s again 1" {
			t.Errorf("it fired %d times, and gave %q last", len(lines), lines[len(lines)-1])
		}
	}
}

func TestTimersOfSourcesWithAndWithoutTimesGoByArrival(t *testing.T) {
	app := stream.New("Both")
	var both []stream.Stream[string]
	for number, name := range []string{"timed", "untimed"} {
		source := stream.TCPSource(fmt.Sprint("127.0.0.1:", 7010+number), stream.Newline, stream.Text.Decode)
		if name == "timed" {
			source = source.EventTime(func(payload []byte) time.Time { return time.UnixMilli(int64(len(payload))) })
		}
		both = append(both, stream.KeyBy(stream.From(app, name, source), "by all", func(line string) string { return "all" }))
	}
	now := func(ctx context.Context) string { return fmt.Sprint(stream.Now(ctx).Sub(wallarootest.Start)) }
	step := stream.MapState(stream.Merge(both[0], both[1]), "now", func(ctx context.Context, line string, _ *int) (string, error) {
		stream.SetTimerAfter(ctx, "end", time.Second)
		return line + " " + now(ctx), nil
	})
	stream.OnTimer(step, "end", func(ctx context.Context, _ *stream.Timer, _ *int) (string, error) {
		return "end " + now(ctx), nil
	}).To(textSink())
	tested := wallarootest.New(t, app)
	tested.Send("timed", "a")
	tested.Advance(500 * time.Millisecond)
	tested.Send("untimed", "b")
	tested.Send("timed", "c")
	tested.Advance(time.Second)
	wallarootest.Equal(t, tested.Lines("Both"), []string{"a 0s", "b 500ms", "c 500ms", "end 1.5s"})
}

func TestATimerThatIsAlwaysDueEndsTheTest(t *testing.T) {
	said := failing(func(t wallarootest.T) {
		app := wallarootest.New(t, ordering(false))
		app.Send("Lines", "a poll 0")
		app.Advance(time.Second)
	})
	expectSaid(t, said, "after Advance(1s), timers still fire after 2000 more ticks of this time: one sets itself to a time that is over; let it set itself to a later time, or not in each run")
}

func TestStatesEndWithoutMessages(t *testing.T) {
	for _, isEvent := range []bool{false, true} {
		app := wallarootest.New(t, ordering(isEvent, stream.TTL(10*time.Second)))
		app.Send("Lines", "a close 20", "b look", "c close 10")
		app.Advance(9 * time.Second)
		app.Send("Lines", "b look")
		app.Advance(time.Second)
		wallarootest.Equal(t, app.Keys("order"), []string{"b"})
		wallarootest.Equal(t, app.Lines("Orders"), []string{"c close 10s close 10"})
		app.Send("Lines", "a look")
		wallarootest.Equal(t, wallarootest.State[[]string](app, "order", "a"), []string{"look"})
		app.Advance(9 * time.Second)
		wallarootest.Equal(t, app.Keys("order"), []string{"a"})
	}
}

func TestWhatATimerCannotDoIsADeadLetter(t *testing.T) {
	app := wallarootest.New(t, ordering(false))
	app.Send("Lines", "a strange 1", "a close -1", "a fail", "a far")
	app.Advance(time.Hour)
	var letters []string
	for _, letter := range app.DeadLetters() {
		letters = append(letters, letter.Code+" "+letter.Reason)
	}
	wallarootest.Equal(t, letters, []string{
		`C529 timer "strange" is not declared by the step, which has ["close" "again" "poll"]; declare it with OnTimer`,
		`C529 timer "close" is set to -1s from now; expected no time before`,
		`C501 asked to fail`,
		`C529 timer "close" is set to 10000-01-01 00:00:00 +0000 UTC; expected a time of the years 1 to 9999`,
	})
	wallarootest.Equal(t, len(app.Keys("order")), 0)
}

func TestTimersOutsideOfTimedFunctionsFail(t *testing.T) {
	app := stream.New("Plain")
	lines := stream.KeyBy(stream.From(app, "Lines", textSource()), "by key", func(line string) string { return line })
	stream.MapState(lines, "plain", func(ctx context.Context, line string, _ *int) (string, error) {
		return stream.Now(ctx).String(), nil
	}).To(textSink())
	run := wallarootest.New(t, app)
	run.Send("Lines", "a")
	wallarootest.Equal(t, run.DeadLetters()[0].Reason, "Now was called outside of the functions of a state step with TTL or OnTimer")
}

// Results of a key depend neither on the drawn behaviour of a cluster, nor on the number of steps in which time advances.
func TestDrawnTimersDoNotDependOnHowTheyRun(t *testing.T) {
	for seed := range uint64(25) {
		var first []string
		isEvent := seed%2 == 0
		for run := range uint64(4) {
			options := []wallarootest.Option{wallarootest.Vary(1000*seed + run)}
			if run == 0 {
				options = nil
			}
			draw := rand.New(rand.NewPCG(seed, 3))
			app := wallarootest.New(t, ordering(isEvent, stream.TTL(20*time.Second)), options...)
			for range 1 + draw.IntN(20) {
				key := string(rune('a' + draw.IntN(3)))
				switch draw.IntN(8) {
				case 0, 1:
					d := time.Duration(draw.IntN(9000)) * time.Millisecond
					if run%2 == 1 {
						app.Advance(d / 3)
						d -= d / 3
					}
					app.Advance(d)
				case 2:
					app.Visit("forget", nil)
				case 3:
					app.Send("Lines", key+" delete")
				case 4:
					app.Send("Lines", key+fmt.Sprint(" again ", draw.IntN(9)))
				case 5:
					app.Send("Lines", key+" fail")
				default:
					app.Send("Lines", key+fmt.Sprint(" close ", draw.IntN(9)))
				}
			}
			app.Advance(10 * time.Second)
			got := app.Lines("Orders")
			slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
			got = append(got, app.Keys("order")...)
			got = append(got, fmt.Sprint(len(app.DeadLetters())))
			if run == 0 {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Fatalf("seed %d, run %d gave %q; the first run %q", seed, run, got, first)
			}
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"wallarooapi/stream"
)

// timed are the values that came to a key, and what its timers do.
type timed struct {
	Values []int64
	Steps  []map[string]behaviour
}

type behaviour struct {
	Ops                   []op
	Appends               []int64
	Gives, Deletes, Fails bool
}

type op struct {
	Set, Delete string
	After       *int64
	At          int64
}

func perform(ctx context.Context, ops []op) {
	for _, each := range ops {
		switch {
		case each.Delete != "":
			stream.DeleteTimer(ctx, each.Delete)
		case each.After != nil:
			stream.SetTimerAfter(ctx, each.Set, time.Duration(*each.After)*time.Millisecond)
		default:
			stream.SetTimer(ctx, each.Set, time.UnixMilli(each.At))
		}
	}
}

func (t *timed) text(key string, number int, timer string, now time.Time) string {
	values := strings.ReplaceAll(fmt.Sprint(t.Values), " ", ",")
	return fmt.Sprintf("%s %d %s %d %s", key, number, timer, now.UnixMilli(), values)
}

// untimedStep returns the step "untimed", which keeps the values.
func untimedStep(keyed stream.Stream[string]) stream.Stream[string] {
	return stream.MapState(keyed, "untimed", func(_ context.Context, text string, state *timed) (string, error) {
		_, rest, _ := strings.Cut(text, ":")
		var message struct{ Value int64 }
		if err := json.Unmarshal([]byte(rest), &message); err != nil {
			return "", err
		}
		state.Values = append(state.Values, message.Value)
		return "", stream.ErrSkip
	})
}

// timedStep returns the step "timed" of a number: timers, as the messages describe them.
func timedStep(keyed stream.Stream[string], number int) stream.Stream[string] {
	step := stream.MapState(keyed, fmt.Sprint("timed ", number), func(ctx context.Context, text string, state *timed) (string, error) {
		key, rest, _ := strings.Cut(text, ":")
		message := struct {
			Value int64
			Ops   []op
			Steps []map[string]behaviour
		}{}
		if err := json.Unmarshal([]byte(rest), &message); err != nil {
			return "", err
		}
		state.Values, state.Steps = append(state.Values, message.Value), message.Steps
		perform(ctx, message.Ops)
		if message.Value == -1 {
			return "", errors.New("minus one")
		}
		return state.text(key, number, "", stream.Now(ctx)), nil
	})
	for _, name := range []string{"x", "y", "z", "\u00fc"} {
		stream.OnTimer(step, name, func(ctx context.Context, timer *stream.Timer, state *timed) (string, error) {
			does := state.Steps[number][name]
			perform(ctx, does.Ops)
			if does.Fails {
				return "", errors.New("the timer was asked to raise")
			}
			state.Values = append(state.Values, does.Appends...)
			if does.Deletes {
				timer.DeleteState()
			}
			if !does.Gives {
				return "", stream.ErrSkip
			}
			return state.text(string(timer.Key), number, name, timer.At), nil
		})
	}
	return stream.OnVisit(step, "forget", func(_ context.Context, visit *stream.Visit, _ *timed) (string, error) {
		if string(visit.Key) != string(visit.Metadata) {
			return "", stream.ErrSkip
		}
		visit.DeleteState()
		return string(visit.Key), nil
	})
}

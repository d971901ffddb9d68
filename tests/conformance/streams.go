// The application Streams: windows as the arguments describe them, a branch, keys of messages, generators.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"wallarooapi/stream"
)

type window struct {
	Kind, Late, Time string
	RangeMs          int64 `json:"range_ms"`
	SlideMs          int64 `json:"slide_ms"`
	DelayMs          int64 `json:"delay_ms"`
	Count            int
	FlushMs          int64 `json:"flush_ms"`
}

func streams(args []string) *stream.Application {
	options := flag.NewFlagSet("streams", flag.ExitOnError)
	in := options.String("in", "", "where the first source listens")
	out := options.String("out", "", "where to send")
	described := options.String("windows", "", "the windows")
	options.Parse(args)
	*in, _, _ = strings.Cut(*in, ",")
	*out, _, _ = strings.Cut(*out, ",")
	var windows []window
	if err := json.Unmarshal([]byte(*described), &windows); err != nil {
		panic(err)
	}
	host, port, _ := net.SplitHostPort(*in)
	first, _ := strconv.Atoi(port)

	app := stream.New("Streams")
	var results []stream.Stream[string]
	for number, w := range windows {
		source := stream.TCPSource(net.JoinHostPort(host, strconv.Itoa(first+number)), stream.U32BE, decode)
		if w.Time == "event" {
			source = source.EventTime(func(payload []byte) time.Time { return time.Time{} })
		}
		values := stream.KeyBy(stream.From(app, fmt.Sprint("in", number), source), "key", func(v int64) string { return strconv.FormatInt(v, 10) })
		results = append(results, w.over(values, aggregationOf(fmt.Sprint("values ", number))))
	}
	results = append(results, texts(app, net.JoinHostPort(host, strconv.Itoa(first+len(windows))))...)
	stream.Merge(results[0], results[1:]...).To(stream.TCPSink(*out, func(text string) ([]byte, error) { return []byte(text), nil }))
	return app
}

// texts returns the streams of texts: each goes two ways, to a state per key, and to a single state.
func texts(app *stream.Application, address string) []stream.Stream[string] {
	words := stream.From(app, "words", stream.TCPSource(address, stream.U32BE, func(payload []byte) (string, error) { return string(payload), nil }))
	keyed := stream.KeyBy(words, "name", name)
	counting := stream.From(app, "counting", stream.GeneratorSource("1", next))
	stumbling := stream.From(app, "stumbling", stream.GeneratorSource("1", func(ctx context.Context, previous string) (string, error) {
		if previous == "3" {
			return "", errors.New("the generator was asked to raise")
		}
		return next(ctx, previous)
	}))
	branches := []stream.Stream[string]{
		stream.Map(keyed, "left", func(_ context.Context, text string) (string, error) { return "<" + text, nil }),
		stream.Map(keyed, "right", func(_ context.Context, text string) (string, error) { return text + ">", nil }),
		numbered(keyed),
		stream.MapState(stream.Collect(keyed), "total", count),
	}
	emitted := stream.FlatMap(keyed, "emit", emit, even, odd)
	outputs := []stream.Stream[string]{emitted, stream.FromOutput(emitted, even), stream.FromOutput(emitted, odd)}
	for number := range 3 {
		outputs = append(outputs, timedStep(keyed, number))
	}
	outputs = append(outputs, untimedStep(keyed))
	return append(append(branches, outputs...), stream.Collect(counting), stream.Collect(stumbling))
}

var even, odd = stream.NewOutput[string]("even"), stream.NewOutput[string]("odd")

func emit(ctx context.Context, text string) (results []string, err error) {
	for _, item := range strings.Split(text, ",") {
		to, rest, _ := strings.Cut(item, ":")
		switch to {
		case "main":
			results = append(results, rest)
		case "fail":
			return results, errors.New("emit was asked to raise")
		default:
			stream.NewOutput[string](to).Emit(ctx, rest)
		}
	}
	return results, nil
}

func name(text string) string {
	if text == "" {
		panic("no key in an empty text")
	}
	key, _, _ := strings.Cut(text, ":")
	return key
}

func count(_ context.Context, text string, number *int64) (string, error) {
	*number++
	return fmt.Sprintf("%s=%d", text, *number), nil
}

// numbered counts for each key, and is visited.
func numbered(keyed stream.Stream[string]) stream.Stream[string] {
	numbers := stream.MapState(keyed, "number", count)
	numbers = stream.OnVisit(numbers, "show", func(_ context.Context, visit *stream.Visit, number *int64) (string, error) {
		return fmt.Sprintf("%s %s %d", visit.Key, visit.Metadata, *number), nil
	})
	numbers = stream.OnVisit(numbers, "add", func(_ context.Context, visit *stream.Visit, number *int64) (string, error) {
		added, err := strconv.ParseInt(string(visit.Metadata), 10, 64)
		*number += added
		switch {
		case err != nil:
			return "", err
		case *number == 13:
			return "", errors.New("the visitor was asked to raise")
		}
		return "", stream.ErrSkip
	})
	return stream.OnVisit(numbers, "forget", func(_ context.Context, visit *stream.Visit, _ *int64) (string, error) {
		if string(visit.Key) != string(visit.Metadata) {
			return "", stream.ErrSkip
		}
		visit.DeleteState()
		return string(visit.Key), nil
	})
}

// next gives 1 to 5.
func next(_ context.Context, previous string) (string, error) {
	if previous == "5" {
		return "", stream.ErrEnd
	}
	number, err := strconv.Atoi(previous)
	return strconv.Itoa(number + 1), err
}

// decode is never asked: the windows' messages come in the codec int64.
func decode(payload []byte) (int64, error) { return strconv.ParseInt(string(payload), 10, 64) }

func (w window) over(values stream.Stream[int64], a stream.Aggregation[int64, []int64, string]) stream.Stream[string] {
	milliseconds := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	if w.Kind == "count" {
		return stream.CountWindow(values, stream.Count{Size: w.Count, Flush: milliseconds(w.FlushMs)}, a)
	}
	return stream.RangeWindow(values, stream.Range{
		Length: milliseconds(w.RangeMs), Slide: milliseconds(w.SlideMs), Delay: milliseconds(w.DelayMs), Late: stream.Late(w.Late),
	}, a)
}

// aggregationOf returns the aggregation of the vectors: -1 fails in Update, -2 in Output.
func aggregationOf(name string) stream.Aggregation[int64, []int64, string] {
	return stream.Aggregation[int64, []int64, string]{
		Name:    name,
		Initial: func() []int64 { return nil },
		Update: func(v int64, values []int64) []int64 {
			if v == -1 {
				panic("minus one")
			}
			return append(values, v)
		},
		Combine: func(earlier, later []int64) []int64 { return append(slices.Clone(earlier), later...) },
		Output: func(key string, values []int64) (string, error) {
			if slices.Contains(values, -2) {
				return "", errors.New("minus two")
			}
			words := []string{key}
			for _, v := range values {
				words = append(words, strconv.FormatInt(v, 10))
			}
			return strings.Join(words, " "), nil
		},
	}
}

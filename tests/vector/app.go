// A source and a window for each window of the vectors; a message is KEY TIME VALUE, an output key and values.
package main

import (
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
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

type window struct {
	Kind, Late, Time string
	RangeMs          int64 `json:"range_ms"`
	SlideMs          int64 `json:"slide_ms"`
	GapMs            int64 `json:"gap_ms"`
	DelayMs          int64 `json:"delay_ms"`
	Count            int
	FlushMs          int64 `json:"flush_ms"`
}

type value struct {
	Key    string
	Number int64
}

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("vectors", flag.ExitOnError)
	in := options.String("in", "", "where the first source listens")
	out := options.String("out", "", "where to send")
	described := options.String("windows", "", "the windows")
	options.Parse(args)
	var windows []window
	if err := json.Unmarshal([]byte(*described), &windows); err != nil {
		panic(err)
	}
	host, port, _ := net.SplitHostPort(*in)
	first, _ := strconv.Atoi(port)

	app := stream.New("Vectors")
	var results []stream.Stream[string]
	for number, w := range windows {
		source := stream.TCPSource(net.JoinHostPort(host, strconv.Itoa(first+number)), stream.U32BE, decode)
		if w.Time == "event" {
			source = source.EventTime(eventTime)
		}
		keyed := stream.KeyBy(stream.From(app, fmt.Sprint("in", number), source), "key", func(v value) string { return v.Key })
		results = append(results, w.over(keyed, aggregationOf(fmt.Sprint("values ", number))))
	}
	stream.Merge(results[0], results[1:]...).To(stream.TCPSink(*out, func(text string) ([]byte, error) { return []byte(text), nil }))
	return app
}

func decode(payload []byte) (value, error) {
	words := strings.Split(string(payload), " ")
	number, err := strconv.ParseInt(words[2], 10, 64)
	return value{words[0], number}, err
}

func eventTime(payload []byte) time.Time {
	ms, err := strconv.ParseInt(strings.Split(string(payload), " ")[1], 10, 64)
	if err != nil {
		panic(err)
	}
	return time.UnixMilli(ms)
}

func (w window) over(values stream.Stream[value], a stream.Aggregation[value, []int64, string]) stream.Stream[string] {
	milliseconds := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	if w.Kind == "count" {
		return stream.CountWindow(values, stream.Count{Size: w.Count, Flush: milliseconds(w.FlushMs)}, a)
	}
	if w.Kind == "session" {
		return stream.SessionWindow(values, stream.Session{Gap: milliseconds(w.GapMs), Delay: milliseconds(w.DelayMs), Late: stream.Late(w.Late)}, a)
	}
	return stream.RangeWindow(values, stream.Range{
		Length: milliseconds(w.RangeMs), Slide: milliseconds(w.SlideMs), Delay: milliseconds(w.DelayMs), Late: stream.Late(w.Late),
	}, a)
}

// aggregationOf returns the aggregation of the vectors: -1 fails in Update, -2 in Output.
func aggregationOf(name string) stream.Aggregation[value, []int64, string] {
	return stream.Aggregation[value, []int64, string]{
		Name:    name,
		Initial: func() []int64 { return nil },
		Update: func(v value, values []int64) []int64 {
			if v.Number == -1 {
				panic("minus one")
			}
			return append(values, v.Number)
		},
		Combine: func(earlier, later []int64) []int64 { return append(slices.Clone(earlier), later...) },
		Output: func(key string, values []int64) (string, error) {
			if slices.Contains(values, -2) {
				return "", errors.New("minus two")
			}
			words := []string{key}
			for _, each := range values {
				words = append(words, strconv.FormatInt(each, 10))
			}
			return strings.Join(words, " "), nil
		},
	}
}

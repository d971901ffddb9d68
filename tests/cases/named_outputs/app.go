// Keeps the highest temperature of each sensor; alerts and what cannot be read leave by outputs of their own.
package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

const limit = 100

type reading struct {
	Sensor  string
	Degrees int
}

var (
	unread = stream.NewOutput[string]("unread")
	empty  = stream.NewOutput[string]("empty")
	alerts = stream.NewOutput[reading]("alerts")
)

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("named outputs", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Named outputs")
	lines := stream.From(app, "readings", stream.TCPSource(*in, stream.U32BE, stream.Text.Decode))
	readings := stream.Map(lines, "read", read, unread, empty)
	highest := stream.FlatMapState(stream.KeyBy(readings, "sensor", sensor), "keep highest", keepHighest, alerts)
	notRead := stream.KeyBy(stream.FromOutput(readings, unread), "first_word", firstWord)
	alarms := stream.Map(stream.FromOutput(highest, alerts), "alarm", alarm)
	stream.Merge(highest, alarms, notRead).To(stream.TCPSink(*out, encode))
	return app
}

// read reads "SENSOR DEGREES". Nothing goes on from the output empty: its messages are counted and dropped.
func read(ctx context.Context, line string) (*reading, error) {
	if line == "" {
		empty.Emit(ctx, line)
		return nil, nil
	}
	name, text, _ := strings.Cut(line, " ")
	degrees, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		unread.Emit(ctx, "unread "+line)
		return nil, nil
	}
	return &reading{name, int(degrees)}, nil
}

func sensor(r *reading) string { return r.Sensor }

func firstWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return word
}

type highest struct{ Degrees int }

// Init is called for each new state.
func (h *highest) Init() { h.Degrees = -1 }

func keepHighest(ctx context.Context, r *reading, h *highest) ([]string, error) {
	if r.Degrees > limit {
		alerts.Emit(ctx, *r)
	}
	if r.Degrees == 999 {
		return nil, fmt.Errorf("%s is broken", r.Sensor) // then its alert does not go on either
	}
	if r.Degrees <= h.Degrees {
		return nil, nil
	}
	h.Degrees = r.Degrees
	return []string{fmt.Sprintf("%s highest %d", r.Sensor, r.Degrees)}, nil
}

func alarm(_ context.Context, r reading) (string, error) {
	return fmt.Sprintf("%s alert %d", r.Sensor, r.Degrees), nil
}

func encode(line string) ([]byte, error) { return []byte(line + "\n"), nil }

func main() { worker.Main(setup) }

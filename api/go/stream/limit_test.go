package stream_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"wallarooapi/stream"
)

// limits returns the greatest values of the schema for the fields of windows.
func limits(t *testing.T) map[string]int {
	text, err := os.ReadFile("../../../topology-schema/topology.schema.json")
	var schema struct {
		Defs struct {
			Window struct {
				OneOf []struct {
					Properties map[string]struct{ Maximum int }
				}
			}
		} `json:"$defs"`
	}
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, kind := range schema.Defs.Window.OneOf {
		for name, field := range kind.Properties {
			found[name] = field.Maximum
		}
	}
	return found
}

// A test accepts a window only if a run accepts it: drawn sizes and durations around the limits of the schema.
func TestWindowsHaveTheLimitsOfTheSchema(t *testing.T) {
	most := limits(t)
	counting := stream.Aggregation[string, int, int]{
		Name: "counted", Initial: func() int { return 0 }, Update: func(_ string, n int) int { return n + 1 },
		Combine: func(a, b int) int { return a + b }, Output: func(_ string, n int) (int, error) { return n, nil },
	}
	source := rand.New(rand.NewPCG(1, 2))
	around := func(name string) int { return most[name] + []int{-1, 0, 1, most[name] / 2}[source.IntN(4)] }
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for range 200 {
		app := stream.New("Limits")
		texts := stream.Collect(stream.From(app, "texts", stream.TCPSource("127.0.0.1:7010", stream.Newline, stream.Text.Decode)))
		length, delay, gap, size, flush := around("range_ms"), around("delay_ms"), around("gap_ms"), around("count"), around("flush_ms")
		sink := stream.TCPSink("127.0.0.1:7002", func(int) ([]byte, error) { return nil, nil })
		stream.RangeWindow(texts, stream.Range{Length: ms(length), Delay: ms(delay)}, counting).To(sink)
		stream.SessionWindow(texts, stream.Session{Gap: ms(gap), Delay: ms(delay)}, counting).To(sink)
		stream.CountWindow(texts, stream.Count{Size: size, Flush: ms(flush)}, counting).To(sink)
		reported := ""
		if err := app.Check(); err != nil {
			reported = err.Error()
		}
		for function, is := range map[string]bool{
			"RangeWindow":   length > most["range_ms"] || delay > most["delay_ms"],
			"SessionWindow": gap > most["gap_ms"] || delay > most["delay_ms"],
			"CountWindow":   size > most["count"] || flush > most["flush_ms"],
		} {
			if strings.Contains(reported, "T207 "+function) != is {
				t.Fatalf("%s with %v: %s", function, []int{length, delay, gap, size, flush}, reported)
			}
		}
	}
}

// A test accepts a name of a part only if a run accepts it, whichever part has it.
func TestAllPartsHaveTheSameNames(t *testing.T) {
	for name, reason := range map[string]string{
		"":                       "it is empty",
		"a\nb":                   "it has the control character U+000A",
		strings.Repeat("x", 201): "it has 201 characters",
		"\xff":                   "it is not UTF-8",
	} {
		for at, part := range []string{"application", "source", "step", "sink"} {
			names := []string{"App", "texts", "upper", "out"}
			names[at] = name
			if part == "sink" && name == "" {
				continue // the name of the application
			}
			app := stream.New(names[0])
			texts := stream.From(app, names[1], stream.TCPSource("127.0.0.1:7010", stream.Newline, stream.Text.Decode))
			texts = stream.Map(texts, names[2], func(_ context.Context, text string) (string, error) { return text, nil })
			texts.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode).Named(names[3]))
			err := app.Check()
			if err == nil || !strings.Contains(err.Error(), "T210 "+part+" name ") || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s %.10q: %v", part, name, err)
			}
		}
	}
}

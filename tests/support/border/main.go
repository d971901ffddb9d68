// Command border goes every way across the border to another worker, each with a value that no codec can write; app.py is the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"

	wa "wallarooapi"
	"wallarooapi/stream"
	"wallarooapi/worker"
)

// Message says where it gets a value that cannot be written.
type Message struct {
	Key   string  `json:"key"`
	Place string  `json:"place"`
	Bad   string  `json:"bad"`
	Count int     `json:"count"`
	Value float64 `json:"value"`
}

func (m Message) at(place string) Message {
	if m.Place != place {
		return m
	}
	m.Value = math.NaN()
	switch m.Bad {
	case "inf":
		m.Value = math.Inf(1)
	case "-inf":
		m.Value = math.Inf(-1)
	}
	return m
}

// Count is how many messages came.
type Count struct{ Count int }

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("border", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("border")
	parts := wa.OtherProgram("parts", "parts.py")
	key := func(m Message) string { return m.Key }
	source := stream.From(app, "source", stream.TCPSource(*in, stream.U32BE, decode))
	first := stream.Through[Message](source, parts.Computation("first", "json", "json"))
	middle := stream.Map(first, "middle", func(_ context.Context, m Message) (Message, error) { return m.at("middle"), nil })
	second := stream.Through[Message](middle, parts.Computation("second", "json", "json"))
	last := stream.Map(second, "last", func(_ context.Context, m Message) (Message, error) { return m.at("last"), nil })
	keyed := stream.KeyBy(last, "key", key)
	count := stream.Through[Message](keyed, parts.StateComputation("count", "json", "json"))
	total := stream.MapState(stream.KeyBy(count, "key again", key), "total", total)
	third := stream.Through[Message](total, parts.Computation("third", "json", "json"))
	third.To(stream.LineSink(*out, func(m Message) ([]byte, error) { return fmt.Appendf(nil, "%s %d", m.Key, m.Count), nil }))
	return app
}

func total(_ context.Context, m Message, state *Count) (Message, error) {
	state.Count++
	m.Count = m.Count*1000 + state.Count
	return m.at("total"), nil
}

func decode(payload []byte) (Message, error) {
	words := strings.Fields(string(payload))
	return Message{Key: words[0], Place: words[1], Bad: words[2], Value: 0.5}.at("source"), nil
}

func main() { worker.Main(setup) }

// Command visited has two levels of state whose keys are visited; app.py is the same program.
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

// Message is a key and what it gets.
type Message struct {
	Key    string
	Number int
}

// Numbers is the state of a key: what it got.
type Numbers struct{ Values []int }

func (n *Numbers) add(number int) { n.Values = append(n.Values, number) }

func (n *Numbers) sum() (sum int) {
	for _, value := range n.Values {
		sum += value
	}
	return sum
}

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("visits", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("visits")
	messages := stream.From(app, "messages", stream.TCPSource(*in, stream.U32BE, decode))
	keyed := stream.KeyBy(messages, "key", func(m Message) string { return m.Key })
	first := stream.FlatMapState(keyed, "first", func(_ context.Context, m Message, state *Numbers) ([]string, error) {
		state.add(m.Number)
		return []string{fmt.Sprintf("%s got %d", m.Key, m.Number)}, nil
	})
	for _, name := range []string{"add", "show", "odd", "boom", "both"} {
		stream.OnVisitFlat(first, name, visitFirst)
	}
	again := stream.KeyBy(first, "key again", func(text string) string { return text[:1] })
	second := stream.MapState(again, "second", func(_ context.Context, text string, state *Numbers) (string, error) {
		state.add(1)
		return fmt.Sprintf("%s %d", text, len(state.Values)), nil
	})
	stream.OnVisit(second, "both", func(_ context.Context, visit *stream.Visit, state *Numbers) (string, error) {
		state.add(1)
		return fmt.Sprintf("%s second %d", visit.Key, len(state.Values)), nil
	})
	second.To(stream.LineSink(*out, func(text string) ([]byte, error) { return []byte(text), nil }))
	return app
}

func visitFirst(_ context.Context, visit *stream.Visit, state *Numbers) ([]string, error) {
	// As Python shows a list.
	shown := fmt.Sprintf("%s %s %s", visit.Key, visit.Name, strings.ReplaceAll(fmt.Sprint(state.Values), " ", ", "))
	if visit.Name == "show" {
		return []string{shown}, nil
	}
	number, err := strconv.Atoi(string(visit.Metadata))
	if err != nil {
		return nil, err
	}
	state.add(number)
	switch {
	case visit.Name == "boom" && state.sum()%3 == 0:
		return nil, fmt.Errorf("%s", shown)
	case visit.Name == "odd" && len(state.Values)%2 == 1:
		visit.DeleteState()
		return []string{shown, shown}, nil
	}
	return []string{shown}, nil
}

func decode(payload []byte) (Message, error) {
	key, digits, _ := strings.Cut(string(payload), "=")
	number, err := strconv.Atoi(digits)
	return Message{key, number}, err
}

func main() { worker.Main(setup) }

// The work of `make bench-peers` on this project, in Go.
package main

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

// total is the state of a key.
type total struct{ Count int }

type result struct{ Key, Value string }

type reading struct {
	ID         int64  `json:"id"`
	User       string `json:"user"`
	Fahrenheit int64  `json:"fahrenheit"`
	Place      string `json:"place"`
}

type converted struct {
	ID      int64  `json:"id"`
	User    string `json:"user"`
	Celsius int64  `json:"celsius"`
	Place   string `json:"place"`
}

func setup([]string) *stream.Application {
	app := stream.New(os.Getenv("RUN"))
	input := stream.Kafka{Topic: os.Getenv("INPUT"), Brokers: []string{os.Getenv("BROKER")}}
	output := stream.Kafka{Topic: os.Getenv("OUTPUT"), Brokers: input.Brokers, ExactlyOnce: os.Getenv("EXACTLY_ONCE") == "1"}
	if os.Getenv("MODE") != "realtime" {
		input.Options = map[string]string{"maxOffsetsPerTrigger": os.Getenv("BATCH")}
	}
	messages, sink := stream.From(app, "in", stream.KafkaSource(input, text)), stream.KafkaSink(output, encode)
	switch os.Getenv("WORK") {
	case "words":
		words := stream.KeyBy(stream.FlatMap(messages, "split", split), "by word", byWord)
		stream.MapState(words, "count words", countWord).To(sink)
	case "keyed":
		stream.MapState(messages, "count messages", countMessage).To(sink)
	default:
		stream.Map(messages, "convert", convert).To(sink)
	}
	return app
}

func text(r stream.Record) (string, error) { return string(r.Value), nil }

func split(_ context.Context, line string) ([]string, error) { return strings.Fields(line), nil }

func byWord(word string) string { return word }

func countWord(_ context.Context, word string, t *total) (result, error) {
	t.Count++
	return result{word, word + " => " + strconv.Itoa(t.Count)}, nil
}

func countMessage(_ context.Context, message string, t *total) (result, error) {
	key, payload, _ := strings.Cut(message, " ")
	t.Count++
	return result{key, key + " => " + strconv.Itoa(t.Count) + " " + payload}, nil
}

func convert(_ context.Context, text string) (result, error) {
	var r reading
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return result{}, err
	}
	value, err := json.Marshal(converted{r.ID, strings.ToUpper(r.User), (r.Fahrenheit - 320) * 50 / 9, r.Place})
	return result{r.User, string(value)}, err
}

func encode(r result) (stream.Record, error) {
	return stream.Record{Key: []byte(r.Key), Value: []byte(r.Value)}, nil
}

func main() { worker.Main(setup) }

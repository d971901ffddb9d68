// Reads orders from a topic of Kafka, and writes each customer's total to another one, exactly once.
package main

import (
	"context"
	"encoding/json"
	"strconv"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

var brokers = []string{"127.0.0.1:9092"}

type order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// total is the state of a customer, and what is written.
type total struct {
	Customer string
	Cents    int
}

// setup declares the application. Both topics are created where they do not exist; a state step after a topic has the keys of its
// records.
func setup(args []string) *stream.Application {
	app := stream.New("Totals")
	read := stream.Kafka{Topic: "orders", Brokers: brokers, Create: &stream.TopicCreation{Partitions: 2}}
	write := stream.Kafka{Topic: "totals", Brokers: brokers, ExactlyOnce: true, Create: &stream.TopicCreation{Like: "orders"}}
	orders := stream.From(app, "orders", stream.KafkaSource(read, decode))
	stream.MapState(orders, "add", add).To(stream.KafkaSink(write, encode))
	return app
}

// decode returns the order of a record; a value that is no order is a dead letter.
func decode(record stream.Record) (order, error) {
	var o order
	err := json.Unmarshal(record.Value, &o)
	return o, err
}

// add changes the total of the customer, and returns it.
func add(_ context.Context, o order, t *total) (total, error) {
	t.Customer = o.Customer
	t.Cents += o.Cents
	return *t, nil
}

// encode returns value and key of a record.
func encode(t total) (stream.Record, error) {
	return stream.Record{Key: []byte(t.Customer), Value: []byte(strconv.Itoa(t.Cents))}, nil
}

func main() { worker.Main(setup) }

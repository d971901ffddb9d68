// Reads orders from a Kafka topic, and writes each customer's total to another topic, exactly once.
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

// total is the state of a customer, and also a message for the sink.
type total struct {
	Customer string
	Cents    int
}

// setup declares the application. Topics that do not exist are created. The step "add" has a state for each key of the
// records, because no other step sets keys.
func setup(args []string) *stream.Application {
	app := stream.New("Totals")
	read := stream.Kafka{Topic: "orders", Brokers: brokers, Create: &stream.TopicCreation{Partitions: 2}}
	write := stream.Kafka{Topic: "totals", Brokers: brokers, ExactlyOnce: true, Create: &stream.TopicCreation{Like: "orders"}}
	orders := stream.From(app, "orders", stream.KafkaSource(read, decode))
	stream.MapState(orders, "add", add).To(stream.KafkaSink(write, encode))
	return app
}

// decode returns the order in a record. A record whose value is not an order becomes a dead letter.
func decode(record stream.Record) (order, error) {
	var o order
	err := json.Unmarshal(record.Value, &o)
	return o, err
}

// add adds an order to the customer's total, and returns the total.
func add(_ context.Context, o order, t *total) (total, error) {
	t.Customer = o.Customer
	t.Cents += o.Cents
	return *t, nil
}

// encode returns a total as a record, with the customer as key.
func encode(t total) (stream.Record, error) {
	return stream.Record{Key: []byte(t.Customer), Value: []byte(strconv.Itoa(t.Cents))}, nil
}

func main() { worker.Main(setup) }

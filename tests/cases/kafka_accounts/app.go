// Keeps the balance of accounts: the key of a Kafka record is the account, so nothing else names it.
package main

import (
	"context"
	"strconv"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

// Balances below zero go to another partition than all others.
var above, below int32 = 0, 2

func setup(args []string) *stream.Application {
	app := stream.New("Accounts")
	payments := stream.From(app, "payments", stream.KafkaSourceOf("kafka_source", args, stream.Value(decodeAmount)))
	stream.MapState(payments, "book", book).To(stream.KafkaSinkOf("kafka_sink", args, encodeBalance))
	return app
}

type account struct{ Balance int }

func decodeAmount(value []byte) (int, error) { return strconv.Atoi(string(value)) }

func book(_ context.Context, amount int, a *account) (int, error) {
	a.Balance += amount
	return a.Balance, nil
}

func encodeBalance(balance int) (stream.Record, error) {
	record := stream.Record{Value: strconv.AppendInt(nil, int64(balance), 10), Partition: &above}
	if balance < 0 {
		record.Key, record.Partition = []byte("below"), &below
	}
	return record, nil
}

func main() { worker.Main(setup) }

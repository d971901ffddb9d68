// Alerts of single transactions that are too large; a generator makes the transactions.
package main

import (
	"context"
	"flag"
	"fmt"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("alerts", flag.ExitOnError)
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Alerts (stateless)")
	transactions := stream.From(app, "transactions", stream.GeneratorSource(transaction{1, "Fix", 100}, next))
	stream.Map(transactions, "check transaction", check).To(stream.TCPSink(*out, encode))
	return app
}

type transaction struct {
	Number int
	User   string
	Amount int
}

var users = []string{"Fix", "Joyce", "Mia", "Noor"}

const last = 120

// next makes a transaction from the one before, so that a restart goes on where it stood.
func next(_ context.Context, previous transaction) (transaction, error) {
	if previous.Number == last {
		return transaction{}, stream.ErrEnd
	}
	number := previous.Number + 1
	remainder := (previous.Amount*31%3001 + 3001) % 3001
	return transaction{number, users[number*7%4], remainder - 1500}, nil
}

func check(_ context.Context, t transaction) (string, error) {
	switch {
	case t.Amount > 1000:
		return fmt.Sprintf("%s deposit %d %d", t.User, t.Number, t.Amount), nil
	case t.Amount < -1000:
		return fmt.Sprintf("%s withdrawal %d %d", t.User, t.Number, -t.Amount), nil
	}
	return "", stream.ErrSkip
}

func encode(text string) ([]byte, error) { return []byte(text + "\n"), nil }

func main() { worker.Main(setup) }

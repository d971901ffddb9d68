// Alerts of users whose account goes below zero; a generator makes the transactions, the state is the account.
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

	app := stream.New("Alerts (stateful)")
	transactions := stream.From(app, "transactions", stream.GeneratorSource(transaction{1, "Fix", 100}, next))
	byUser := stream.KeyBy(transactions, "user_of", func(t transaction) string { return t.User })
	stream.MapState(byUser, "book", book).To(stream.TCPSink(*out, encode))
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

type account struct {
	Balance     int
	IsOverdrawn bool
}

func book(_ context.Context, t transaction, a *account) (string, error) {
	wasOverdrawn := a.IsOverdrawn
	a.Balance += t.Amount
	a.IsOverdrawn = a.Balance < 0
	if a.IsOverdrawn == wasOverdrawn {
		return "", stream.ErrSkip
	}
	side := "above"
	if a.IsOverdrawn {
		side = "below"
	}
	return fmt.Sprintf("%s %s zero at %d: %d", t.User, side, t.Number, a.Balance), nil
}

func encode(text string) ([]byte, error) { return []byte(text + "\n"), nil }

func main() { worker.Main(setup) }

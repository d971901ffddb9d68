// Books payments by card. A payment that is far above the card's average goes to a second sink instead.
package main

import (
	"context"
	"fmt"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

const factor, known = 5, 3 // after 3 payments, a payment above 5 times the average is refused

// payment is a message. Fields of messages and states must begin with a capital letter to be written and read back.
type payment struct {
	Card   string
	Amount int
}

// account is the state of a card.
type account struct{ Count, Total int }

// alerts is the second output of the step book.
var alerts = stream.NewOutput[payment]("alerts")

func setup(args []string) *stream.Application {
	app := stream.New("Fraud")
	payments := stream.From(app, "payments", stream.TCPSource("127.0.0.1:7010", stream.U32BE, decode))
	booked := stream.MapState(stream.KeyBy(payments, "card", card), "book", book, alerts)
	booked.To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	refused := stream.Map(stream.FromOutput(booked, alerts), "describe", describe)
	refused.To(stream.TCPSink("127.0.0.1:7003", stream.Text.Encode))
	return app
}

// decode reads a message "CARD AMOUNT".
func decode(payload []byte) (payment, error) {
	var p payment
	_, err := fmt.Sscanf(string(payload), "%s %d", &p.Card, &p.Amount)
	return p, err
}

func card(p payment) string { return p.Card }

// book books a payment, or emits it to alerts. In the second case it returns ErrSkip, because there is no result.
func book(ctx context.Context, p payment, a *account) (string, error) {
	if a.Count >= known && p.Amount*a.Count > factor*a.Total {
		alerts.Emit(ctx, p)
		return "", stream.ErrSkip
	}
	a.Count++
	a.Total += p.Amount
	return fmt.Sprintf("%s %d\n", p.Card, a.Total), nil
}

func describe(_ context.Context, p payment) (string, error) {
	return fmt.Sprintf("%s refused %d\n", p.Card, p.Amount), nil
}

func main() { worker.Main(setup) }

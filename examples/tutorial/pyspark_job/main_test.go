package main

import (
	"testing"
	"time"

	"wallarooapi/wallarootest"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func TestWhatIsFarAboveTheUsualIsAnAlert(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	for _, amount := range []float64{10, 20, 30, 61} {
		app.Send("orders", order{"ann", amount, noon})
	}
	app.Send("orders", order{"bob", 1000, noon})
	wallarootest.Equal(t, wallarootest.Messages[alert](app, "alerts"), []alert{{"ann", 61, 20, noon}})
}

func TestAnOrderOfNothingIsADeadLetter(t *testing.T) {
	app := wallarootest.New(t, setup(nil))
	app.Send("orders", order{"ann", 0, noon}, `{"customer": null, "amount": 1, "at": "2026-01-31T12:00:00Z"}`)
	var reasons []string
	for _, letter := range app.DeadLetters() {
		reasons = append(reasons, letter.Reason)
	}
	wallarootest.Equal(t, reasons, []string{"an order of 0", "column customer is null; only the type *string takes null"})
}

// Raises an alert for an order that is far above the customer's average so far.
package main

import (
	"context"
	"fmt"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

// order is a row of the DataFrame of orders, which may have more columns.
type order struct {
	Customer string    `json:"customer"`
	Amount   float64   `json:"amount"`
	At       time.Time `json:"at"`
}

// alert is a row of the DataFrame of alerts.
type alert struct {
	Customer string    `json:"customer"`
	Amount   float64   `json:"amount"`
	Usual    float64   `json:"usual"`
	At       time.Time `json:"at"`
}

// history is the state of a customer.
type history struct {
	Orders int
	Total  float64
}

// setup declares the application. Its source and its sink are DataFrames of a PySpark job.
func setup(args []string) *stream.Application {
	app := stream.New("alerts")
	orders := stream.KeyBy(stream.From(app, "orders", stream.DataFrameSource[order]()), "customer", customer)
	stream.MapState(orders, "history", compare).To(stream.DataFrameSink[alert]().Named("alerts"))
	return app
}

func customer(o order) string { return o.Customer }

// compare returns an alert if the order is above three times the average of the customer's earlier orders (at least 3).
func compare(_ context.Context, o order, h *history) (alert, error) {
	if o.Amount <= 0 {
		return alert{}, fmt.Errorf("an order of %g", o.Amount)
	}
	usual, isKnown := h.Total/float64(h.Orders), h.Orders >= 3
	h.Orders++
	h.Total += o.Amount
	if isKnown && o.Amount > 3*usual {
		return alert{o.Customer, o.Amount, usual, o.At}, nil
	}
	return alert{}, stream.ErrSkip
}

func main() { worker.Main(setup) }

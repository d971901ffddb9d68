// Rejects orders of symbols whose spread is too wide: two sources are merged, and one state per symbol serves both.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

// message is an order, or a quote: then Order is nil.
type message struct {
	Symbol     string
	Bid, Offer float64
	Order      *order
}

type order struct{ Number, Quantity int }

// symbolData is the last quote of one symbol; until there is one, orders are rejected.
type symbolData struct {
	Bid, Offer    float64
	AcceptsOrders bool
}

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("market spread", flag.ExitOnError)
	in := options.String("in", "", "where to listen for quotes, and for orders")
	out := options.String("out", "", "where to send")
	options.Parse(args)
	quoteAddress, orderAddress, _ := strings.Cut(*in, ",")

	app := stream.New("Market Spread")
	quotes := stream.From(app, "Market Data", stream.TCPSource(quoteAddress, stream.U32BE, decodeQuote))
	orders := stream.From(app, "Orders", stream.TCPSource(orderAddress, stream.U32BE, decodeOrder))
	merged := stream.Merge(stream.KeyBy(quotes, "symbol_of", symbolOf), stream.KeyBy(orders, "symbol_of", symbolOf))
	stream.MapState(merged, "check market spread", check).To(stream.TCPSink(*out, encode))
	return app
}

func symbolOf(m message) string { return m.Symbol }

func decodeQuote(payload []byte) (quote message, err error) {
	_, err = fmt.Sscan(string(payload), &quote.Symbol, &quote.Bid, &quote.Offer)
	return quote, err
}

func decodeOrder(payload []byte) (message, error) {
	m := message{Order: &order{}}
	_, err := fmt.Sscan(string(payload), &m.Symbol, &m.Order.Number, &m.Order.Quantity)
	return m, err
}

// check takes a quote over into the state; an order that is rejected goes on with the quote.
func check(_ context.Context, m message, s *symbolData) (message, error) {
	if m.Order == nil {
		spread := m.Offer - m.Bid
		s.Bid, s.Offer = m.Bid, m.Offer
		s.AcceptsOrders = spread < 0.05 && spread/((m.Bid+m.Offer)/2) < 0.05
		return m, stream.ErrSkip
	}
	if s.AcceptsOrders {
		return m, stream.ErrSkip
	}
	m.Bid, m.Offer = s.Bid, s.Offer
	return m, nil
}

func encode(m message) ([]byte, error) {
	return fmt.Appendf(nil, "%s %d %d %.2f %.2f\n", m.Symbol, m.Order.Number, m.Order.Quantity, m.Bid, m.Offer), nil
}

func main() { worker.Main(setup) }

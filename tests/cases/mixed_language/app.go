// The value of what is held of each share, computed by components of a program in Python: book.py.
package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	wa "wallarooapi"
	"wallarooapi/stream"
	"wallarooapi/worker"
)

type order struct {
	Symbol string `json:"symbol"`
	Amount int    `json:"amount"`
}

type priced struct {
	Symbol string `json:"symbol"`
	Amount int    `json:"amount"`
	Value  int    `json:"value"`
}

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("positions", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Positions")
	book := wa.OtherProgram("book", "book.py")
	orders := stream.From(app, "Orders", stream.TCPSource(*in, stream.U32BE, decode))
	prices := stream.Through[priced](orders, book.Computation("price", "json", "json"))
	keyed := stream.KeyBy(prices, "symbol", func(p priced) string { return p.Symbol })
	positions := stream.Through[priced](keyed, book.StateComputation("position", "json", "json"))
	stream.Map(positions, "line", line).To(stream.TCPSink(*out, stream.Text.Encode))
	return app
}

// decode reads "SYMBOL AMOUNT".
func decode(payload []byte) (order, error) {
	symbol, digits, _ := strings.Cut(string(payload), " ")
	amount, err := strconv.Atoi(digits)
	return order{symbol, amount}, err
}

func line(_ context.Context, held priced) (string, error) {
	return fmt.Sprintf("%s %d %d\n", held.Symbol, held.Amount, held.Value), nil
}

func main() { worker.Main(setup) }

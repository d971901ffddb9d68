// Prices and positions, for programs in other languages: what ../book.py does in Python.
package main

import (
	"context"
	"errors"
	"fmt"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

var prices = map[string]int{"AAPL": 150, "GOOG": 120, "MSFT": 300}

type order struct {
	Symbol string `json:"symbol"`
	Amount int    `json:"amount"`
}

type priced struct {
	Symbol string `json:"symbol"`
	Amount int    `json:"amount"`
	Value  int    `json:"value"`
}

// held is what is held of one share.
type held struct{ Amount, Value int }

func setup([]string) *stream.Library {
	library := stream.NewLibrary()
	stream.OfferMap(library, "price", price, "json", "json")
	stream.OfferMapState(library, "position", position, "json", "json")
	return library
}

func price(_ context.Context, o order) (priced, error) {
	each, known := prices[o.Symbol]
	if !known {
		return priced{}, fmt.Errorf("%s has no price", o.Symbol)
	}
	return priced{o.Symbol, o.Amount, o.Amount * each}, nil
}

func position(_ context.Context, p priced, h *held) (priced, error) {
	h.Amount += p.Amount
	h.Value += p.Value
	if h.Amount < 0 {
		return priced{}, errors.New("sold what is not held")
	}
	return priced{p.Symbol, h.Amount, h.Value}, nil
}

func main() { worker.Main(setup) }

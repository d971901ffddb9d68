// Package symbol has the state of market_spread, and its computations.
package symbol

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"math"
	"os"

	"market_spread/message"
)

type Data struct {
	LastBid, LastOffer float64
	ShouldReject       bool
}

func init() { gob.Register(&Data{}) }

type DataBuilder struct{}

func (*DataBuilder) Build() interface{} { return &Data{} }

type Partition struct{}

func (*Partition) Partition(data interface{}) []byte {
	if quote, ok := data.(*message.Quote); ok {
		return []byte(quote.Symbol)
	}
	return []byte(data.(*message.Order).Symbol)
}

// Load reads the keys, a symbol in a line, that are filled up to four characters.
func Load(file string) (keys [][]byte) {
	opened, err := os.Open(file)
	if err != nil {
		panic(err)
	}
	defer opened.Close()
	for scanner := bufio.NewScanner(opened); scanner.Scan(); {
		keys = append(keys, []byte(fmt.Sprintf("%4s", scanner.Text())))
	}
	return keys
}

type CheckOrder struct{}

func (*CheckOrder) Name() string { return "Check Order" }

func (*CheckOrder) Compute(data interface{}, state interface{}) (interface{}, bool) {
	kept := state.(*Data)
	if !kept.ShouldReject {
		return nil, false
	}
	return &message.Result{Order: data.(*message.Order), Bid: kept.LastBid, Offer: kept.LastOffer}, false
}

type Update struct{}

func (*Update) Name() string { return "Update Market Data" }

func (*Update) Compute(data interface{}, state interface{}) (interface{}, bool) {
	quote, kept := data.(*message.Quote), state.(*Data)
	spread := quote.Offer - quote.Bid
	middle := (quote.Bid + quote.Offer) / 2
	kept.LastBid, kept.LastOffer = quote.Bid, quote.Offer
	kept.ShouldReject = spread >= 0.05 || math.Abs(spread/middle) >= 0.05
	return nil, true
}

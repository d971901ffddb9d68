// Market spread with the API of Wallaroo 0.4: keys are numbers, builders of states have names.
package main

import (
	"C"
	"encoding/binary"
	"encoding/gob"
	"flag"
	"math"
	"strings"

	"market_spread/message"
	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	fs := flag.NewFlagSet("wallaroo", flag.ExitOnError)
	in := fs.String("in", "", "input host:port list")
	out := fs.String("out", "", "output host:port")
	symbols := fs.String("symbols", "", "symbols, with commas")
	fs.Parse(wa.Args[1:])

	inputs, output := strings.Split(*in, ","), strings.Split(*out, ":")
	orders, quotes := strings.Split(inputs[0], ":"), strings.Split(inputs[1], ":")
	wa.Serialize, wa.Deserialize = message.Serialize, message.Deserialize
	gob.Register(&SymbolData{})

	var keys []uint64
	for _, symbol := range strings.Split(*symbols, ",") {
		keys = append(keys, key(symbol))
	}
	application := app.MakeApplication("market-spread")
	application.NewPipeline("Orders", app.MakeTCPSourceConfig(orders[0], orders[1], &message.OrderDecoder{})).
		ToStatePartition(&CheckOrder{}, &SymbolDataBuilder{}, "symbol-data", &SymbolPartition{}, keys).
		ToSink(app.MakeTCPSinkConfig(output[0], output[1], &message.ResultEncoder{}))
	application.NewPipeline("Market Data", app.MakeTCPSourceConfig(quotes[0], quotes[1], &message.QuoteDecoder{})).
		ToStatePartition(&UpdateMarketData{}, &SymbolDataBuilder{}, "symbol-data", &SymbolPartition{}, keys).
		Done()
	return C.CString(application.ToJson())
}

func key(symbol string) uint64 {
	return uint64(binary.BigEndian.Uint32([]byte(strings.Repeat(" ", 4-len(symbol)) + symbol)))
}

type SymbolPartition struct{}

func (*SymbolPartition) Partition(data interface{}) uint64 {
	if quote, ok := data.(*message.Quote); ok {
		return key(quote.Symbol)
	}
	return key(data.(*message.Order).Symbol)
}

type SymbolData struct {
	LastBid, LastOffer float64
	ShouldReject       bool
}

type SymbolDataBuilder struct{}

func (*SymbolDataBuilder) Name() string       { return "symbol data" }
func (*SymbolDataBuilder) Build() interface{} { return &SymbolData{} }

type CheckOrder struct{}

func (*CheckOrder) Name() string { return "Check Order" }

func (*CheckOrder) Compute(data interface{}, state interface{}) (interface{}, bool) {
	kept := state.(*SymbolData)
	if !kept.ShouldReject {
		return nil, false
	}
	return &message.Result{Order: data.(*message.Order), Bid: kept.LastBid, Offer: kept.LastOffer}, false
}

type UpdateMarketData struct{}

func (*UpdateMarketData) Name() string { return "Update Market Data" }

func (*UpdateMarketData) Compute(data interface{}, state interface{}) (interface{}, bool) {
	quote, kept := data.(*message.Quote), state.(*SymbolData)
	spread := quote.Offer - quote.Bid
	middle := (quote.Bid + quote.Offer) / 2
	kept.LastBid, kept.LastOffer = quote.Bid, quote.Offer
	kept.ShouldReject = spread >= 0.05 || math.Abs(spread/middle) >= 0.05
	return nil, true
}

func main() {}

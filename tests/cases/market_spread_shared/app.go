// Rejects orders of symbols whose spread is too wide: two pipelines share the state of a name, one has no sink.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"strings"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	fs := flag.NewFlagSet("market spread", flag.ExitOnError)
	in := fs.String("in", "", "input host:port list")
	out := fs.String("out", "", "output host:port list")
	fs.Parse(wa.Args[1:])

	quotes, orders, _ := strings.Cut(*in, ",")
	quoteHost, quotePort, _ := net.SplitHostPort(quotes)
	orderHost, orderPort, _ := net.SplitHostPort(orders)
	outHost, outPort, _ := net.SplitHostPort(*out)

	application := app.MakeApplication("Market Spread, shared")
	application.NewPipeline("Market Data", app.MakeTCPSourceConfig(quoteHost, quotePort, &QuoteDecoder{})).
		ToStatePartitionWithKeys(&UpdateSymbol{}, &SymbolDataBuilder{}, "symbol data", &SymbolOf{}, Symbols()).
		Done()
	application.NewPipeline("Orders", app.MakeTCPSourceConfig(orderHost, orderPort, &OrderDecoder{})).
		ToStatePartitionWithKeys(&CheckOrder{}, &SymbolDataBuilder{}, "symbol data", &SymbolOf{}, Symbols()).
		ToSink(app.MakeTCPSinkConfig(outHost, outPort, &RejectionEncoder{}))
	return C.CString(application.ToJson())
}

func Symbols() (keys [][]byte) {
	for _, symbol := range []string{"AAPL", "FIS", "GOOG", "IBM", "MSFT", "NONE", "ORCL", "TSLA"} {
		keys = append(keys, []byte(symbol))
	}
	return keys
}

type Quote struct {
	Symbol     string
	Bid, Offer float64
}

type Order struct {
	Symbol           string
	Number, Quantity int
}

type Rejection struct {
	Order
	Bid, Offer float64
}

type SymbolOf struct{}

func (*SymbolOf) Partition(data interface{}) []byte {
	if quote, ok := data.(*Quote); ok {
		return []byte(quote.Symbol)
	}
	return []byte(data.(*Order).Symbol)
}

// framed is what both decoders have.
type framed struct{}

func (framed) HeaderLength() uint64          { return 4 }
func (framed) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

type QuoteDecoder struct{ framed }

func (*QuoteDecoder) Decode(b []byte) interface{} {
	quote := &Quote{}
	if _, err := fmt.Sscan(string(b), &quote.Symbol, &quote.Bid, &quote.Offer); err != nil {
		panic(err)
	}
	return quote
}

type OrderDecoder struct{ framed }

func (*OrderDecoder) Decode(b []byte) interface{} {
	order := &Order{}
	if _, err := fmt.Sscan(string(b), &order.Symbol, &order.Number, &order.Quantity); err != nil {
		panic(err)
	}
	return order
}

// SymbolData is the last quote of one symbol; until there is one, orders are rejected.
type SymbolData struct {
	Bid, Offer    float64
	RejectsOrders bool
}

type SymbolDataBuilder struct{}

func (*SymbolDataBuilder) Build() interface{} { return &SymbolData{RejectsOrders: true} }

type UpdateSymbol struct{}

func (*UpdateSymbol) Name() string { return "update symbol" }

func (*UpdateSymbol) Compute(data interface{}, state interface{}) (interface{}, bool) {
	quote, symbol := data.(*Quote), state.(*SymbolData)
	spread := quote.Offer - quote.Bid
	symbol.Bid, symbol.Offer = quote.Bid, quote.Offer
	symbol.RejectsOrders = spread >= 0.05 || spread/((quote.Bid+quote.Offer)/2) >= 0.05
	return nil, true
}

type CheckOrder struct{}

func (*CheckOrder) Name() string { return "check order" }

func (*CheckOrder) Compute(data interface{}, state interface{}) (interface{}, bool) {
	symbol := state.(*SymbolData)
	if !symbol.RejectsOrders {
		return nil, false
	}
	return &Rejection{*data.(*Order), symbol.Bid, symbol.Offer}, false
}

type RejectionEncoder struct{}

func (*RejectionEncoder) Encode(data interface{}) []byte {
	r := data.(*Rejection)
	return fmt.Appendf(nil, "%s %d %d %.2f %.2f\n", r.Symbol, r.Number, r.Quantity, r.Bid, r.Offer)
}

func main() {}

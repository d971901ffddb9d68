// Market spread with the API of Wallaroo 0.5, in its layout: packages of its own below go/src, no go.mod.
package main

import (
	"C"
	"flag"
	"strings"

	"market_spread/message"
	"market_spread/symbol"
	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	fs := flag.NewFlagSet("wallaroo", flag.ExitOnError)
	in := fs.String("in", "", "input host:port list")
	out := fs.String("out", "", "output host:port")
	symbols := fs.String("symbols", "symbols.txt", "file of symbols")
	fs.Parse(wa.Args[1:])

	inputs, output := strings.Split(*in, ","), strings.Split(*out, ":")
	orders, quotes := strings.Split(inputs[0], ":"), strings.Split(inputs[1], ":")
	wa.Serialize, wa.Deserialize = message.Serialize, message.Deserialize

	keys := symbol.Load(*symbols)
	application := app.MakeApplication("market-spread")
	application.NewPipeline("Orders", app.MakeTCPSourceConfig(orders[0], orders[1], &message.OrderDecoder{})).
		ToStatePartitionWithKeys(&symbol.CheckOrder{}, &symbol.DataBuilder{}, "symbol-data", &symbol.Partition{}, keys).
		ToSink(app.MakeTCPSinkConfig(output[0], output[1], &message.ResultEncoder{}))
	application.NewPipeline("Market Data", app.MakeTCPSourceConfig(quotes[0], quotes[1], &message.QuoteDecoder{})).
		ToStatePartitionWithKeys(&symbol.Update{}, &symbol.DataBuilder{}, "symbol-data", &symbol.Partition{}, keys).
		Done()
	return C.CString(application.ToJson())
}

func main() {}

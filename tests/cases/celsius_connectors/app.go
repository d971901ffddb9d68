// Turns degrees Celsius into degrees Fahrenheit; messages come and go through connectors. Their programs find encoder and decoder
// in app.py.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("celsius", flag.ExitOnError)
	feedPort := options.String("feed-port", "7100", "where the application listens for the connector")
	takePort := options.String("take-port", "7200", "where the connector for the output listens")
	options.Parse(args)

	app := stream.New("Celsius with Connectors")
	degrees := stream.From(app, "celsius", stream.PlainConnectorSource("127.0.0.1:"+*feedPort, decode))
	stream.Map(degrees, "convert", convert).To(stream.PlainConnectorSink("127.0.0.1:"+*takePort, encode).Named("fahrenheit"))
	return app
}

func decode(payload []byte) (float32, error) {
	return math.Float32frombits(binary.BigEndian.Uint32(payload)), nil
}

func convert(_ context.Context, degrees float32) (float64, error) {
	return float64(degrees)*1.8 + 32, nil
}

func encode(degrees float64) ([]byte, error) { return fmt.Appendf(nil, "%.2f", degrees), nil }

func main() { worker.Main(setup) }

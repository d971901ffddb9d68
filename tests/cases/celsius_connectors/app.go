// Turns degrees Celsius into degrees Fahrenheit; messages come and go through connectors. Their programs find encoder and decoder
// in app.py.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	fs := flag.NewFlagSet("celsius", flag.ExitOnError)
	feedPort := fs.String("feed-port", "7100", "where the application listens for the connector")
	takePort := fs.String("take-port", "7200", "where the connector for the output listens")
	fs.Parse(wa.Args[1:])

	application := app.MakeApplication("Celsius with Connectors")
	application.NewPipeline("Celsius Conversion", app.MakeSourceConnectorConfig("celsius", "127.0.0.1", *feedPort, &Decoder{})).
		To(&ConvertBuilder{}).
		ToSink(app.MakeSinkConnectorConfig("fahrenheit", "127.0.0.1", *takePort, &Encoder{}))

	return C.CString(application.ToJson())
}

type Decoder struct{}

func (d *Decoder) Decode(b []byte) interface{} {
	return math.Float32frombits(binary.BigEndian.Uint32(b))
}

type ConvertBuilder struct{}

func (cb *ConvertBuilder) Build() interface{} {
	return &Convert{}
}

type Convert struct{}

func (c *Convert) Name() string {
	return "convert"
}

func (c *Convert) Compute(data interface{}) interface{} {
	return float64(data.(float32))*1.8 + 32
}

type Encoder struct{}

func (e *Encoder) Encode(data interface{}) []byte {
	return []byte(fmt.Sprintf("%.2f", data.(float64)))
}

func main() {}

package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	fs := flag.NewFlagSet("celsius", flag.ExitOnError)
	inHostsPortsArg := fs.String("in", "", "input host:port list")
	outHostsPortsArg := fs.String("out", "", "output host:port list")

	fs.Parse(wa.Args[1:])

	inHost, inPort := hostPort(*inHostsPortsArg)
	outHost, outPort := hostPort(*outHostsPortsArg)

	application := app.MakeApplication("Celsius to Fahrenheit")
	application.NewPipeline("Celsius Conversion", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		To(&MultiplyBuilder{}).
		To(&AddBuilder{}).
		ToSink(app.MakeTCPSinkConfig(outHost, outPort, &Encoder{}))

	return C.CString(application.ToJson())
}

func hostPort(argument string) (string, string) {
	first := strings.Split(argument, ",")[0]
	host, port, found := strings.Cut(first, ":")
	if !found {
		fmt.Fprintf(os.Stderr, "%q is not host:port\n", first)
		os.Exit(2)
	}
	return host, port
}

type Decoder struct{}

func (d *Decoder) HeaderLength() uint64 {
	return 4
}

func (d *Decoder) PayloadLength(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(b[0:4]))
}

func (d *Decoder) Decode(b []byte) interface{} {
	return math.Float32frombits(binary.BigEndian.Uint32(b))
}

type MultiplyBuilder struct{}

func (mb *MultiplyBuilder) Build() interface{} {
	return &Multiply{}
}

type Multiply struct{}

func (m *Multiply) Name() string {
	return "multiply by 1.8"
}

func (m *Multiply) Compute(data interface{}) interface{} {
	return data.(float32) * 1.8
}

type AddBuilder struct{}

func (ab *AddBuilder) Build() interface{} {
	return &Add{}
}

type Add struct{}

func (a *Add) Name() string {
	return "add 32"
}

func (a *Add) Compute(data interface{}) interface{} {
	return data.(float32) + 32
}

type Encoder struct{}

func (e *Encoder) Encode(data interface{}) []byte {
	return []byte(fmt.Sprintf("%.6f\n", data.(float32)))
}

func main() {}

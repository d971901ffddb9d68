package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	fs := flag.NewFlagSet("reverse", flag.ExitOnError)
	inHostsPortsArg := fs.String("in", "", "input host:port list")
	outHostsPortsArg := fs.String("out", "", "output host:port list")

	fs.Parse(wa.Args[1:])

	inHost, inPort := hostPort(*inHostsPortsArg)
	outHost, outPort := hostPort(*outHostsPortsArg)

	wa.Serialize = Serialize
	wa.Deserialize = Deserialize

	application := app.MakeApplication("Reverse Word")
	application.NewPipeline("Reverse", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		To(&ReverseBuilder{}).
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
	word := string(b)
	return &word
}

type ReverseBuilder struct{}

func (rb *ReverseBuilder) Build() interface{} {
	return &Reverse{}
}

type Reverse struct{}

func (r *Reverse) Name() string {
	return "reverse"
}

// Compute returns a string, which Serialize below does not know: the message is never serialized.
func (r *Reverse) Compute(data interface{}) interface{} {
	runes := []rune(*(data.(*string)))
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}

type Encoder struct{}

func (e *Encoder) Encode(data interface{}) []byte {
	return []byte(data.(string) + "\n")
}

func Serialize(c interface{}) []byte {
	switch t := c.(type) {
	case *string:
		return []byte(*t)
	default:
		fmt.Println("SERIALIZE MISSED A CASE")
		return nil
	}
}

func Deserialize(buff []byte) interface{} {
	word := string(buff)
	return &word
}

func main() {}

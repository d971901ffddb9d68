// Two pipelines whose steps share states, twice in a row; what app.py says, in Go, where messages are structs.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	options := flag.NewFlagSet("order", flag.ExitOnError)
	in := options.String("in", "", "where the sources listen")
	out := options.String("out", "", "where to send")
	options.Parse(wa.Args[1:])
	outHost, outPort, _ := net.SplitHostPort(*out)

	application := app.MakeApplication("Order")
	for origin, address := range strings.Split(*in, ",") {
		host, port, _ := net.SplitHostPort(address)
		application.NewPipeline(fmt.Sprint("in ", origin), app.MakeTCPSourceConfig(host, port, &Decoder{origin})).
			ToStatePartition(&Follow{"first"}, &TrailBuilder{}, "first trail", &KeyOf{}).
			ToStatePartition(&Follow{"second"}, &TrailBuilder{}, "second trail", &NumberOf{}).
			ToSink(app.MakeTCPSinkConfig(outHost, outPort, &Encoder{}))
	}
	return C.CString(application.ToJson())
}

type Odd struct {
	Key            string
	Number, Origin int
}

type Even struct {
	Origin    int
	Text, Key string
	Number    int
}

type message interface{ parts() (string, int, int) }

func (m *Odd) parts() (string, int, int)  { return m.Key, m.Number, m.Origin }
func (m *Even) parts() (string, int, int) { return m.Key, m.Number, m.Origin }

func made(key string, number, origin int) interface{} {
	if number%2 != 0 {
		return &Odd{key, number, origin}
	}
	return &Even{origin, "even", key, number}
}

type Decoder struct{ origin int }

func (*Decoder) HeaderLength() uint64          { return 4 }
func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (d *Decoder) Decode(b []byte) interface{} {
	key, text, _ := strings.Cut(string(b), " ")
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return made(key, number, d.origin)
}

type KeyOf struct{}

func (*KeyOf) Partition(data interface{}) []byte {
	key, _, _ := data.(message).parts()
	return []byte(key)
}

type NumberOf struct{}

func (*NumberOf) Partition(data interface{}) []byte {
	_, number, _ := data.(message).parts()
	return []byte(strconv.Itoa(number % 3))
}

type Trail struct{ Count, Sum int }

type TrailBuilder struct{}

func (*TrailBuilder) Build() interface{} { return &Trail{} }

type Follow struct{ name string }

func (f *Follow) Name() string { return f.name }

func (f *Follow) Compute(data interface{}, state interface{}) (interface{}, bool) {
	key, number, origin := data.(message).parts()
	trail := state.(*Trail)
	trail.Count++
	if number == 13 {
		panic("thirteen")
	}
	trail.Sum = (trail.Sum*31 + number + 7*origin) % 1_000_003
	return made(fmt.Sprintf("%s.%d.%d", key, trail.Count, trail.Sum), number, origin), true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte {
	key, number, origin := data.(message).parts()
	return fmt.Appendf(nil, "%s %d %d", key, number, origin)
}

func main() {}

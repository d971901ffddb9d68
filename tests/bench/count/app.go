// Counts each key: the application of `make bench-keys`, in Go.
package main

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	app "wallarooapi/application"
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

func setup(args []string) *app.Application {
	inHost, inPort, _ := strings.Cut(after(args, "--in"), ":")
	outHost, outPort, _ := strings.Cut(after(args, "--out"), ":")
	a := app.MakeApplication("Count")
	a.NewPipeline("Count", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		ToStatePartition(&Add{}, &CountBuilder{}, "counts", &Key{}).
		ToSink(app.MakeTCPSinkConfig(outHost, outPort, &Encoder{}))
	return a
}

func after(args []string, option string) string { return args[slices.Index(args, option)+1] }

// Count is the state of one key.
type Count struct{ Value uint64 }

type CountBuilder struct{}

func (*CountBuilder) Build() interface{} { return &Count{} }

type Decoder struct{}

func (*Decoder) HeaderLength() uint64 { return 4 }

func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (*Decoder) Decode(b []byte) interface{} { return string(b) }

type Key struct{}

func (*Key) Partition(data interface{}) []byte { return []byte(data.(string)) }

type Add struct{}

func (*Add) Name() string { return "count" }

func (*Add) Compute(data interface{}, state interface{}) (interface{}, bool) {
	count := state.(*Count)
	count.Value++
	return data.(string) + " " + strconv.FormatUint(count.Value, 10) + "\n", true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte { return []byte(data.(string)) }

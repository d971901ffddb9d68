// Counts words and checks each word's sequence; tests/recovery/README.md says how.
package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	app "wallarooapi/application"
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

func after(args []string, option string) string { return args[slices.Index(args, option)+1] }

func setup(args []string) *app.Application {
	inHost, inPort, _ := strings.Cut(after(args, "--in"), ":")
	outHost, outPort, _ := strings.Cut(after(args, "--out"), ":")
	a := app.MakeApplication("Sequence")
	a.NewPipeline("Sequence", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		ToMulti(&SplitBuilder{}).
		ToStatePartition(&Count{}, &TotalBuilder{}, "totals", &Key{}).
		ToSink(app.MakeTCPSinkConfig(outHost, outPort, &Encoder{}))
	return a
}

// Total is the state of one word.
type Total struct {
	Count int
}

type TotalBuilder struct{}

func (*TotalBuilder) Build() interface{} { return &Total{} }

type Decoder struct{}

func (*Decoder) HeaderLength() uint64 { return 4 }

func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (*Decoder) Decode(b []byte) interface{} { return string(b) }

type SplitBuilder struct{}

func (*SplitBuilder) Build() interface{} { return &Split{} }

type Split struct{}

func (*Split) Name() string { return "split" }

func (*Split) Compute(data interface{}) []interface{} {
	var items []interface{}
	for _, item := range strings.Split(data.(string), " ") {
		items = append(items, item)
	}
	return items
}

type Key struct{}

func (*Key) Partition(data interface{}) []byte {
	word, _, _ := strings.Cut(data.(string), ":")
	return []byte(word)
}

type Count struct{}

func (*Count) Name() string { return "count" }

func (*Count) Compute(data interface{}, state interface{}) (interface{}, bool) {
	total := state.(*Total)
	total.Count++
	word, number, _ := strings.Cut(data.(string), ":")
	return fmt.Sprintf("%s %d %s\n", word, total.Count, number), true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte { return []byte(data.(string)) }

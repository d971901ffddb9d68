// Counts words with one state per word; keys are made as words are met.
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
	fs := flag.NewFlagSet("wordcount", flag.ExitOnError)
	in := fs.String("in", "", "input host:port list")
	out := fs.String("out", "", "output host:port list")
	fs.Parse(wa.Args[1:])

	inHost, inPort, _ := net.SplitHostPort(strings.Split(*in, ",")[0])
	outHost, outPort, _ := net.SplitHostPort(strings.Split(*out, ",")[0])

	application := app.MakeApplication("Dynamic Word Count")
	application.NewPipeline("Split and Count", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		ToMulti(&SplitBuilder{}).
		ToStatePartition(&CountWord{}, &WordTotalBuilder{}, "word totals", &WordOf{}).
		ToSink(app.MakeTCPSinkConfig(outHost, outPort, &Encoder{}))
	return C.CString(application.ToJson())
}

// WordOf makes each word a key of its own.
type WordOf struct{}

func (*WordOf) Partition(data interface{}) []byte { return []byte(data.(string)) }

type Decoder struct{}

func (*Decoder) HeaderLength() uint64          { return 4 }
func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }
func (*Decoder) Decode(b []byte) interface{}   { return string(b) }

type SplitBuilder struct{}

func (*SplitBuilder) Build() interface{} { return &Split{} }

type Split struct{}

func (*Split) Name() string { return "split" }

func (*Split) Compute(data interface{}) []interface{} {
	var words []interface{}
	for _, word := range strings.Fields(strings.ToLower(data.(string))) {
		words = append(words, word)
	}
	return words
}

// WordTotal is how often one word was seen.
type WordTotal struct{ Total uint64 }

type WordTotalBuilder struct{}

func (*WordTotalBuilder) Build() interface{} { return &WordTotal{} }

type WordCount struct {
	Word  string
	Total uint64
}

type CountWord struct{}

func (*CountWord) Name() string { return "count word" }

func (*CountWord) Compute(data interface{}, state interface{}) (interface{}, bool) {
	total := state.(*WordTotal)
	total.Total++
	return &WordCount{data.(string), total.Total}, true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte {
	count := data.(*WordCount)
	return fmt.Appendf(nil, "%s %d\n", count.Word, count.Total)
}

func main() {}

// A word count that a test can stop in the middle of a call; README.md says how.
package main

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	app "wallarooapi/application"
	"wallarooapi/worker"
)

var folder string

func main() { worker.Main(setup) }

func after(args []string, option string) string { return args[slices.Index(args, option)+1] }

func setup(args []string) *app.Application {
	folder = after(args, "--folder")
	inHost, inPort, _ := strings.Cut(after(args, "--in"), ":")
	outHost, outPort, _ := strings.Cut(after(args, "--out"), ":")
	a := app.MakeApplication("Recovery")
	a.NewPipeline("Recovery", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		ToMulti(&SplitBuilder{}).
		ToStatePartition(&Add{}, &SumBuilder{}, "sums", &Key{}).
		ToSink(app.MakeTCPSinkConfig(outHost, outPort, &Encoder{}))
	return a
}

// Sum is the state of one word.
type Sum struct {
	Count int
	Sum   int64
}

type SumBuilder struct{}

func (*SumBuilder) Build() interface{} { return &Sum{} }

// meet reports to the test that this call is in flight, and waits for its word.
func meet(name string) {
	begun := filepath.Join(folder, name+".begun")
	if _, err := os.Stat(begun); err != nil {
		if err := os.WriteFile(begun+".new", fmt.Appendf(nil, "%d %d", os.Getpid(), os.Getppid()), 0o600); err != nil {
			panic(err)
		}
		if err := os.Rename(begun+".new", begun); err != nil {
			panic(err)
		}
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, name+".go")); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// note reports to the test which words were run, in order; a line that is appended in one write stays whole.
func note(word string) {
	file, err := os.OpenFile(filepath.Join(folder, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintln(file, word); err != nil {
		panic(err)
	}
}

type Decoder struct{}

func (*Decoder) HeaderLength() uint64 { return 4 }

func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (*Decoder) Decode(b []byte) interface{} { return string(b) }

type SplitBuilder struct{}

func (*SplitBuilder) Build() interface{} { return &Split{} }

type Split struct{}

func (*Split) Name() string { return "split" }

func (*Split) Compute(data interface{}) []interface{} {
	var words []interface{}
	for _, word := range strings.Split(data.(string), " ") {
		if strings.HasPrefix(word, "stage-") {
			meet(word)
		}
		words = append(words, word)
	}
	return words
}

type Key struct{}

func (*Key) Partition(data interface{}) []byte { return []byte(data.(string)) }

type Add struct{}

func (*Add) Name() string { return "add" }

func (*Add) Compute(data interface{}, state interface{}) (interface{}, bool) {
	word, sum := data.(string), state.(*Sum)
	if strings.HasPrefix(word, "hold-") {
		meet(word)
	}
	note(word)
	before := sum.Sum
	sum.Count++
	sum.Sum += rand.Int63n(1<<40) + 1
	return fmt.Sprintf("%s %d %d %d\n", word, sum.Count, before, sum.Sum), true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte { return []byte(data.(string)) }

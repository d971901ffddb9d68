// The conformance application; README.md of this folder says what each step does.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	_ "google.golang.org/protobuf/types/known/structpb" // the messages of codecs at a border
	_ "google.golang.org/protobuf/types/known/wrapperspb"

	wa "wallarooapi"
	app "wallarooapi/application"
	"wallarooapi/worker"
)

func main() {
	if strings.Contains(os.Getenv("WALLAROO_ARGS"), `"--windows"`) {
		worker.Main(streams)
	}
	worker.Main(setup)
}

func addresses(args []string, option string) [][2]string {
	var found [][2]string
	for _, part := range strings.Split(args[slices.Index(args, option)+1], ",") {
		colon := strings.LastIndex(part, ":")
		found = append(found, [2]string{part[:colon], part[colon+1:]})
	}
	return found
}

func setup(args []string) *app.Application {
	if slices.Contains(args, "--fail") {
		panic("the setup was asked to fail")
	}
	in, out := addresses(args, "--in"), addresses(args, "--out")
	a := app.MakeApplication("Conformance")
	a.NewPipeline("Words", app.MakeTCPSourceConfig(in[0][0], in[0][1], &Decoder{4})).
		To(&ActBuilder{}).
		ToMulti(&SplitBuilder{}).
		ToStatePartition(&CountWord{}, &CountBuilder{}, "totals", &WordKey{}).
		ToSink(app.MakeTCPSinkConfig(out[0][0], out[0][1], &WordEncoder{}))
	a.NewPipeline("Numbers", app.MakeTCPSourceConfig(in[1][0], in[1][1], &Decoder{2})).
		ToStatePartitionMulti(&Spread{}, &CountBuilder{}, "numbers", &NumberKey{}, []uint64{0, 1, 7, 1<<64 - 1}).
		To(&ShoutBuilder{}).
		ToStatePartition(&Tally{}, &CountBuilder{}, "tallies", &TallyKey{}).
		ToSink(app.MakeTCPSinkConfig(out[1][0], out[1][1], &TextEncoder{}))
	a.NewPipeline("Lines", app.MakeTCPSourceConfig(in[2][0], in[2][1], &Decoder{3})).
		ToSink(app.MakeTCPSinkConfig(out[2][0], out[2][1], &TextEncoder{}))
	return a
}

// Count is the state of one key: a number, and what a message has told of the state: "unwritable", "unreadable", "deadly" or nothing.
type Count struct {
	Count        int
	Kept, Spoilt string
}

func (c *Count) GobEncode() ([]byte, error) {
	switch c.Spoilt {
	case "unwritable":
		return nil, errors.New("the state was asked not to be written")
	case "deadly":
		os.Exit(3)
	}
	return json.Marshal([]any{c.Count, c.Kept, c.Spoilt})
}

func (c *Count) GobDecode(data []byte) error {
	if err := json.Unmarshal(data, &[]any{&c.Count, &c.Kept, &c.Spoilt}); err != nil {
		return err
	}
	if c.Spoilt == "unreadable" {
		return errors.New("the state was asked not to be read")
	}
	return nil
}

// Opaque cannot be serialized.
type Opaque struct{ Signal chan int }

type CountBuilder struct{}

func (*CountBuilder) Build() interface{} { return &Count{} }

type Decoder struct{ header uint64 }

func (d *Decoder) HeaderLength() uint64 { return d.header }

func (d *Decoder) PayloadLength(b []byte) uint64 {
	wide := make([]byte, 8)
	copy(wide[8-len(b):], b)
	return binary.BigEndian.Uint64(wide)
}

func (d *Decoder) Decode(b []byte) interface{} {
	if !utf8.Valid(b) {
		panic("the payload is not UTF-8")
	}
	if string(b) == "skip" {
		return nil
	}
	return string(b)
}

type ActBuilder struct{}

func (*ActBuilder) Build() interface{} { return &Act{} }

type Act struct{}

func (*Act) Name() string { return "act" }

func (*Act) Compute(data interface{}) interface{} {
	switch data.(string) {
	case "drop":
		return nil
	case "raise":
		panic("act was asked to raise")
	case "opaque":
		return &Opaque{make(chan int)}
	case "exit":
		os.Exit(3)
	case "sleep":
		time.Sleep(1500 * time.Millisecond)
	case "flood":
		text := strings.Repeat("flood\n", 1<<17)
		fmt.Fprint(os.Stdout, text)
		fmt.Fprint(os.Stderr, text)
	}
	return data
}

type SplitBuilder struct{}

func (*SplitBuilder) Build() interface{} { return &Split{} }

type Split struct{}

func (*Split) Name() string { return "split" }

func (*Split) Compute(data interface{}) []interface{} {
	text, isText := data.(string)
	if !isText {
		return []interface{}{data}
	}
	switch text {
	case "nothing":
		return nil
	case "raise multi", "wrong multi":
		panic("split was asked to raise")
	}
	var items []interface{}
	for _, item := range strings.Split(text, ",") {
		if item == "none" {
			items = append(items, nil)
		} else {
			items = append(items, item)
		}
	}
	return items
}

type WordKey struct{}

func (*WordKey) Partition(data interface{}) []byte {
	text, isText := data.(string)
	if !isText {
		return []byte("opaque")
	}
	key := strings.Split(text, ":")[0]
	if text == "" || key == "wrong key" {
		panic("no key in this text")
	}
	return []byte(key)
}

type CountWord struct{}

func (*CountWord) Name() string { return "count" }

func (*CountWord) Compute(data interface{}, state interface{}) (interface{}, bool) {
	key, rest, isLong := strings.Cut(data.(string), ":")
	op, rest, _ := strings.Cut(rest, ":")
	if !isLong {
		op = "add"
	}
	total := state.(*Count)
	total.Count++
	switch op {
	case "boom", "wrong pair":
		panic("count was asked to raise")
	case "silent":
		return nil, true
	case "keep":
		total.Kept += rest
	case "unwritable", "unreadable", "deadly":
		total.Spoilt = op
	case "spoil":
		total.Spoilt = "unwritable"
	}
	return fmt.Sprintf("%s:%s=%d;%d", op, key, total.Count, len(data.(string))), op != "forget" && op != "spoil"
}

type WordEncoder struct{}

func (*WordEncoder) Encode(data interface{}) []byte {
	switch strings.Split(data.(string), ":")[0] {
	case "unencodable", "wrong encoding":
		panic("encode was asked to raise")
	case "unsent":
		return nil
	}
	return []byte(data.(string))
}

type TextEncoder struct{}

func (*TextEncoder) Encode(data interface{}) []byte { return []byte(data.(string)) }

type NumberKey struct{}

func (*NumberKey) Partition(data interface{}) uint64 {
	number, err := strconv.ParseUint(strings.Split(data.(string), ":")[0], 10, 64)
	if err != nil {
		panic(err)
	}
	return number
}

type Spread struct{}

func (*Spread) Name() string { return "spread" }

func (*Spread) Compute(data interface{}, state interface{}) ([]interface{}, bool) {
	text, total := data.(string), state.(*Count)
	total.Count++
	if strings.HasSuffix(text, ":boom") {
		panic("spread was asked to raise")
	}
	if strings.HasSuffix(text, ":nothing") {
		return nil, true
	}
	return []interface{}{fmt.Sprintf("%s/%d/1", text, total.Count), nil, fmt.Sprintf("%s/%d/2", text, total.Count)}, true
}

type ShoutBuilder struct{}

func (*ShoutBuilder) Build() interface{} { return &Shout{} }

type Shout struct{}

func (*Shout) Name() string { return "shout" }

func (*Shout) Compute(data interface{}) interface{} { return strings.ToUpper(data.(string)) }

type TallyKey struct{}

func (*TallyKey) Partition(data interface{}) []byte {
	return []byte(strings.Split(data.(string), ":")[0])
}

type Tally struct{}

func (*Tally) Name() string { return "tally" }

func (*Tally) Compute(data interface{}, state interface{}) (interface{}, bool) {
	total := state.(*Count)
	total.Count++
	return fmt.Sprintf("%d %s", total.Count, data), true
}

var _ wa.FramedDecoder = &Decoder{}

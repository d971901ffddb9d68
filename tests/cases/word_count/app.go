package main

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
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
	fs := flag.NewFlagSet("wordcount", flag.ExitOnError)
	inHostsPortsArg := fs.String("in", "", "input host:port list")
	outHostsPortsArg := fs.String("out", "", "output host:port list")

	fs.Parse(wa.Args[1:])

	inHost, inPort := hostPort(*inHostsPortsArg)
	outHost, outPort := hostPort(*outHostsPortsArg)

	wa.Serialize = Serialize
	wa.Deserialize = Deserialize

	application := app.MakeApplication("Word Count Application")
	application.NewPipeline("Split and Count", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		ToMulti(&SplitBuilder{}).
		ToStatePartitionWithKeys(&CountWords{}, &WordTotalsBuilder{}, "word totals", &WordPartitionFunction{}, LetterPartition()).
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

// LetterPartition lists the keys: one for each letter and one for everything else.
func LetterPartition() [][]byte {
	keys := make([][]byte, 0, 27)
	for letter := byte('a'); letter <= 'z'; letter++ {
		keys = append(keys, []byte{letter})
	}
	return append(keys, []byte{'!'})
}

// WordPartitionFunction has no answer for an empty word.
type WordPartitionFunction struct{}

func (wpf *WordPartitionFunction) Partition(data interface{}) []byte {
	word := data.(*string)
	first := (*word)[0]
	if first >= 'a' && first <= 'z' {
		return []byte{first}
	}
	return []byte{'!'}
}

type Decoder struct{}

func (decoder *Decoder) HeaderLength() uint64 {
	return 4
}

func (decoder *Decoder) PayloadLength(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(b[0:4]))
}

func (decoder *Decoder) Decode(b []byte) interface{} {
	line := string(b)
	return &line
}

const punctuation = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

type SplitBuilder struct{}

func (sb *SplitBuilder) Build() interface{} {
	return &Split{}
}

type Split struct{}

func (s *Split) Name() string {
	return "split into words"
}

func (s *Split) Compute(data interface{}) []interface{} {
	lines := data.(*string)
	words := make([]interface{}, 0)
	for _, line := range strings.Split(*lines, "\n") {
		clean := strings.Trim(strings.ToLower(line), punctuation)
		for _, piece := range strings.Split(clean, " ") {
			word := strings.Trim(piece, punctuation)
			words = append(words, &word)
		}
	}
	return words
}

type CountWords struct{}

func (cw *CountWords) Name() string {
	return "Count Words"
}

func (cw *CountWords) Compute(data interface{}, state interface{}) (interface{}, bool) {
	word := data.(*string)
	totals := state.(*WordTotals)
	totals.Update(*word)
	return totals.GetCount(*word), true
}

type WordCount struct {
	Word  string
	Count uint64
}

type WordTotals struct {
	WordTotals map[string]uint64
}

func (wt *WordTotals) Update(word string) {
	wt.WordTotals[word]++
}

func (wt *WordTotals) GetCount(word string) *WordCount {
	return &WordCount{word, wt.WordTotals[word]}
}

type WordTotalsBuilder struct{}

func (wtb *WordTotalsBuilder) Build() interface{} {
	return &WordTotals{make(map[string]uint64)}
}

type Encoder struct{}

func (encoder *Encoder) Encode(data interface{}) []byte {
	wordCount := data.(*WordCount)
	return []byte(fmt.Sprintf("%s => %d\n", wordCount.Word, wordCount.Count))
}

const (
	stringType = iota
	wordTotalsType
)

func Serialize(c interface{}) []byte {
	switch t := c.(type) {
	case *string:
		buff := make([]byte, 4+len(*t))
		binary.BigEndian.PutUint32(buff, stringType)
		copy(buff[4:], *t)
		return buff
	case *WordTotals:
		var buff bytes.Buffer
		kind := make([]byte, 4)
		binary.BigEndian.PutUint32(kind, wordTotalsType)
		buff.Write(kind)
		if err := gob.NewEncoder(&buff).Encode(t.WordTotals); err != nil {
			panic(err)
		}
		return buff.Bytes()
	default:
		fmt.Println("SERIALIZE MISSED A CASE")
		return nil
	}
}

func Deserialize(buff []byte) interface{} {
	kind, payload := binary.BigEndian.Uint32(buff), buff[4:]
	switch kind {
	case stringType:
		word := string(payload)
		return &word
	case wordTotalsType:
		totals := make(map[string]uint64)
		if err := gob.NewDecoder(bytes.NewReader(payload)).Decode(&totals); err != nil {
			panic(err)
		}
		return &WordTotals{totals}
	default:
		fmt.Println("DESERIALIZE MISSED A CASE")
		return nil
	}
}

func main() {}

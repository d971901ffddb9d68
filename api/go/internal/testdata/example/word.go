// Package example contains the applications that the SDK's tests and benchmarks run.
package example

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"strings"

	wa "wallarooapi"
)

// Lines decodes texts that follow a length of 4 bytes.
type Lines struct{}

// HeaderLength returns 4.
func (Lines) HeaderLength() uint64 { return 4 }

// PayloadLength reads the length in big-endian order.
func (Lines) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

// Decode returns a string. It panics for "undecodable" and discards "skipped".
func (Lines) Decode(b []byte) interface{} {
	switch text := string(b); text {
	case "undecodable":
		panic("cannot decode")
	case "skipped":
		return nil
	default:
		return text
	}
}

// Split splits lines into words.
type Split struct{}

// Build returns the computation.
func (Split) Build() interface{} { return Split{} }

// Name returns the name of the step.
func (Split) Name() string { return "split" }

// Compute splits a line at spaces. It panics for "explode".
func (Split) Compute(data interface{}) []interface{} {
	if data == "explode" {
		panic("cannot split")
	}
	words := strings.Split(data.(string), " ")
	out := make([]interface{}, len(words))
	for i, word := range words {
		out[i] = word
	}
	return out
}

// FirstLetter is a partition function that panics for the empty word.
type FirstLetter struct{}

// Partition returns the first byte of a word.
func (FirstLetter) Partition(data interface{}) []byte { return []byte(data.(string)[:1]) }

// Totals is the state of a key.
type Totals struct{ Counts map[string]uint64 }

// TotalsBuilder builds the state.
type TotalsBuilder struct{}

// Build returns an empty state.
func (TotalsBuilder) Build() interface{} { return &Totals{map[string]uint64{}} }

// WordCount is the result for a word.
type WordCount struct {
	Word  string
	Count uint64
}

// CountWords counts words. For a word that begins with "boom" it panics after it has counted the word.
type CountWords struct{}

// Name returns the name of the step.
func (CountWords) Name() string { return "count" }

// Compute counts a word.
func (CountWords) Compute(data, state interface{}) (interface{}, bool) {
	word, totals := data.(string), state.(*Totals)
	totals.Counts[word]++
	if strings.HasPrefix(word, "boom") {
		panic("cannot count " + word)
	}
	return &WordCount{word, totals.Counts[word]}, true
}

// CountEncoder writes "word => count" lines.
type CountEncoder struct{}

// Encode formats a count.
func (CountEncoder) Encode(data interface{}) []byte {
	count := data.(*WordCount)
	return fmt.Appendf(nil, "%s => %d\n", count.Word, count.Count)
}

// Serialize is an example of a program's wa.Serialize. It does not support integers.
func Serialize(value interface{}) []byte {
	switch v := value.(type) {
	case string:
		return append([]byte{'s'}, v...)
	case *Totals:
		out := bytes.NewBufferString("t")
		if err := gob.NewEncoder(out).Encode(v.Counts); err != nil {
			panic(err)
		}
		return out.Bytes()
	}
	return nil
}

// Deserialize reads bytes that Serialize wrote.
func Deserialize(b []byte) interface{} {
	if b[0] == 's' {
		return string(b[1:])
	}
	totals := &Totals{}
	if err := gob.NewDecoder(bytes.NewReader(b[1:])).Decode(&totals.Counts); err != nil {
		panic(err)
	}
	return totals
}

// SetSerialize sets or clears the program's own serialization. It returns a function that clears it.
func SetSerialize(own bool) func() {
	if own {
		wa.Serialize, wa.Deserialize = Serialize, Deserialize
	}
	return func() { wa.Serialize, wa.Deserialize = nil, nil }
}

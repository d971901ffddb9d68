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
	fs := flag.NewFlagSet("alphabet", flag.ExitOnError)
	inHostsPortsArg := fs.String("in", "", "input host:port list")
	outHostsPortsArg := fs.String("out", "", "output host:port list")

	fs.Parse(wa.Args[1:])

	inHost, inPort := hostPort(*inHostsPortsArg)
	outHost, outPort := hostPort(*outHostsPortsArg)

	wa.Serialize = Serialize
	wa.Deserialize = Deserialize

	application := app.MakeApplication("Alphabet")
	application.NewPipeline("Alphabet", app.MakeTCPSourceConfig(inHost, inPort, &Decoder{})).
		ToStatePartitionWithKeys(&AddVotes{}, &RunningVotesTotalBuilder{}, "running vote totals", &LetterPartitionFunction{}, LetterPartition()).
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

func LetterPartition() [][]byte {
	keys := make([][]byte, 0, 26)
	for letter := byte('a'); letter <= 'z'; letter++ {
		keys = append(keys, []byte{letter})
	}
	return keys
}

type LetterPartitionFunction struct{}

func (lpf *LetterPartitionFunction) Partition(data interface{}) []byte {
	return []byte{data.(*LetterAndVotes).Letter}
}

type LetterAndVotes struct {
	Letter byte
	Votes  uint64
}

type Decoder struct{}

func (d *Decoder) HeaderLength() uint64 {
	return 4
}

func (d *Decoder) PayloadLength(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(b[0:4]))
}

func (d *Decoder) Decode(b []byte) interface{} {
	return &LetterAndVotes{b[0], uint64(binary.BigEndian.Uint32(b[1:5]))}
}

type AddVotes struct{}

func (av *AddVotes) Name() string {
	return "add votes"
}

func (av *AddVotes) Compute(data interface{}, state interface{}) (interface{}, bool) {
	total := state.(*RunningVoteTotal)
	total.Update(data.(*LetterAndVotes))
	return total.GetVotes(), true
}

type RunningVotesTotalBuilder struct{}

func (rvtb *RunningVotesTotalBuilder) Build() interface{} {
	return &RunningVoteTotal{}
}

type RunningVoteTotal struct {
	Letter byte
	Votes  uint64
}

func (rvt *RunningVoteTotal) Update(votes *LetterAndVotes) {
	rvt.Letter = votes.Letter
	rvt.Votes += votes.Votes
}

func (rvt *RunningVoteTotal) GetVotes() *LetterAndVotes {
	return &LetterAndVotes{rvt.Letter, rvt.Votes}
}

type Encoder struct{}

func (e *Encoder) Encode(data interface{}) []byte {
	total := data.(*LetterAndVotes)
	buff := make([]byte, 0, 13)
	buff = binary.BigEndian.AppendUint32(buff, 9)
	buff = append(buff, total.Letter)
	return binary.BigEndian.AppendUint64(buff, total.Votes)
}

const (
	letterAndVotesType = iota
	runningVoteTotalType
)

func Serialize(c interface{}) []byte {
	switch t := c.(type) {
	case *LetterAndVotes:
		return encode(letterAndVotesType, t)
	case *RunningVoteTotal:
		return encode(runningVoteTotalType, t)
	default:
		fmt.Println("SERIALIZE MISSED A CASE")
		return nil
	}
}

func encode(kind byte, value interface{}) []byte {
	buff := bytes.NewBuffer([]byte{kind})
	if err := gob.NewEncoder(buff).Encode(value); err != nil {
		panic(err)
	}
	return buff.Bytes()
}

func Deserialize(buff []byte) interface{} {
	decoder := gob.NewDecoder(bytes.NewReader(buff[1:]))
	var value interface{}
	switch buff[0] {
	case letterAndVotesType:
		value = &LetterAndVotes{}
	case runningVoteTotalType:
		value = &RunningVoteTotal{}
	default:
		fmt.Println("DESERIALIZE MISSED A CASE")
		return nil
	}
	if err := decoder.Decode(value); err != nil {
		panic(err)
	}
	return value
}

func main() {}

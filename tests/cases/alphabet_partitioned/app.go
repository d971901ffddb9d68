// Adds up votes for letters: messages get a key, the state is found by it.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type vote struct {
	Letter byte
	Votes  uint64
}

type totalVotes struct{ Votes uint64 }

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("alphabet", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Alphabet Partitioned")
	votes := stream.From(app, "Votes", stream.TCPSource(*in, stream.U32BE, decode))
	byLetter := stream.KeyBy(votes, "letter_of", func(v vote) []byte { return []byte{v.Letter} })
	stream.MapState(byLetter, "add votes", addVotes).To(stream.TCPSink(*out, encode))
	return app
}

func decode(payload []byte) (vote, error) {
	if len(payload) != 5 {
		return vote{}, fmt.Errorf("%d bytes; expected 5", len(payload))
	}
	return vote{payload[0], uint64(binary.BigEndian.Uint32(payload[1:]))}, nil
}

func addVotes(_ context.Context, v vote, total *totalVotes) (vote, error) {
	total.Votes += v.Votes
	return vote{v.Letter, total.Votes}, nil
}

func encode(v vote) ([]byte, error) {
	out := append(binary.BigEndian.AppendUint32(nil, 9), v.Letter)
	return binary.BigEndian.AppendUint64(out, v.Votes), nil
}

func main() { worker.Main(setup) }

// Lap times, judged by components of a program in Python: track.py.
package main

import (
	"flag"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	wa "wallarooapi"
	"wallarooapi/stream"
	"wallarooapi/worker"
)

// The codecs at the border.
const (
	lap  = "protobuf:google.protobuf.Struct"
	line = "protobuf:google.protobuf.StringValue"
)

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("laps", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Laps")
	track := wa.OtherProgram("track", "track.py")
	laps := stream.From(app, "Laps", stream.TCPSource(*in, stream.U32BE, decode))
	speeds := stream.Through[*structpb.Struct](laps, track.Computation("speed", lap, lap))
	keyed := stream.KeyBy(speeds, "rider", func(l *structpb.Struct) string { return l.Fields["rider"].GetStringValue() })
	stream.Through[*wrapperspb.StringValue](keyed, track.StateComputation("best", lap, line)).
		To(stream.TCPSink(*out, encode))
	return app
}

// decode reads "RIDER MILLISECONDS".
func decode(payload []byte) (*structpb.Struct, error) {
	rider, digits, _ := strings.Cut(string(payload), " ")
	milliseconds, err := strconv.Atoi(digits)
	if err != nil {
		return nil, err
	}
	return structpb.NewStruct(map[string]any{"rider": rider, "milliseconds": milliseconds})
}

func encode(l *wrapperspb.StringValue) ([]byte, error) { return []byte(l.GetValue() + "\n"), nil }

func main() { worker.Main(setup) }

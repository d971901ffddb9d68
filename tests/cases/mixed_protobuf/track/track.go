// Speeds and best laps, for programs in other languages: what ../track.py does in Python.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

const metres = 400

// The codecs at the border.
const (
	lap  = "protobuf:google.protobuf.Struct"
	line = "protobuf:google.protobuf.StringValue"
)

// record is the best lap of one rider; 0: none yet.
type record struct{ Milliseconds float64 }

func setup([]string) *stream.Library {
	library := stream.NewLibrary()
	stream.OfferMap(library, "speed", speed, lap, lap)
	stream.OfferMapState(library, "best", best, lap, line)
	return library
}

func speed(_ context.Context, l *structpb.Struct) (*structpb.Struct, error) {
	milliseconds := l.Fields["milliseconds"].GetNumberValue()
	if milliseconds <= 0 {
		return nil, errors.New("a lap takes time")
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"rider": l.Fields["rider"], "milliseconds": l.Fields["milliseconds"],
		"kmh": structpb.NewNumberValue(math.Floor(metres * 3600 / milliseconds)),
	}}, nil
}

func best(_ context.Context, l *structpb.Struct, before *record) (*wrapperspb.StringValue, error) {
	milliseconds := l.Fields["milliseconds"].GetNumberValue()
	if before.Milliseconds == 0 || milliseconds < before.Milliseconds {
		before.Milliseconds = milliseconds
	}
	return wrapperspb.String(fmt.Sprintf("%s %.0f ms, %.0f km/h, best %.0f ms", l.Fields["rider"].GetStringValue(),
		milliseconds, l.Fields["kmh"].GetNumberValue(), before.Milliseconds)), nil
}

func main() { worker.Main(setup) }

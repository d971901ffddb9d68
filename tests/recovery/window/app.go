// Windows whose output states which messages they hold, and in which order, in Go.
package main

import (
	"flag"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

const (
	prime = 1<<61 - 1
	base  = 1_000_003
)

func main() { worker.Main(setup) }

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("windows", flag.ExitOnError)
	in := options.String("in", "", "where to listen: event, ingest, tumbling, count, session")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Windows")
	addresses := strings.Split(*in, ",")
	values := func(kind string, number int, isTimed bool) stream.Stream[value] {
		source := stream.TCPSource(addresses[number], stream.U32BE, decode)
		if isTimed {
			source = source.EventTime(eventTime)
		}
		return stream.KeyBy(stream.From(app, kind, source), "key", func(v value) string { return v.Name })
	}
	sliding := stream.Range{Length: 9 * time.Second, Slide: 3 * time.Second}
	tumbling := stream.Range{Length: 5 * time.Second, Delay: time.Second}
	stream.Merge(
		stream.RangeWindow(values("event", 0, true), sliding, digestOf("event")),
		stream.RangeWindow(values("ingest", 1, false), sliding, digestOf("ingest")),
		stream.RangeWindow(values("tumbling", 2, true), tumbling, digestOf("tumbling")),
		stream.CountWindow(values("count", 3, false), stream.Count{Size: 7}, digestOf("count")),
		stream.SessionWindow(values("session", 4, true), stream.Session{Gap: time.Second, Delay: 3 * time.Second}, digestOf("session")),
	).To(stream.TCPSink(*out, func(line string) ([]byte, error) { return []byte(line + "\n"), nil }))
	return app
}

// value is a message: TIME KEY VALUE.
type value struct {
	Name   string
	Number uint64
}

func decode(payload []byte) (value, error) {
	_, rest, _ := strings.Cut(string(payload), " ")
	name, digits, _ := strings.Cut(rest, " ")
	number, err := strconv.ParseUint(digits, 10, 64)
	return value{name, number}, err
}

func eventTime(payload []byte) time.Time {
	digits, _, _ := strings.Cut(string(payload), " ")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.UnixMilli(ms)
}

// digest is how many values there were, and a number that depends on all of them and on their order.
type digest struct{ Count, Sum uint64 }

func digestOf(kind string) stream.Aggregation[value, digest, string] {
	return stream.Aggregation[value, digest, string]{
		Name:    "digest " + kind,
		Initial: func() digest { return digest{} },
		Update: func(v value, d digest) digest {
			return digest{d.Count + 1, (times(d.Sum, base) + v.Number) % prime}
		},
		Combine: func(earlier, later digest) digest {
			return digest{earlier.Count + later.Count, (times(earlier.Sum, power(later.Count)) + later.Sum) % prime}
		},
		Output: func(key string, d digest) (string, error) {
			return fmt.Sprint(kind, " ", key, " ", d.Count, " ", d.Sum), nil
		},
	}
}

// times multiplies modulo prime.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	_, rest := bits.Div64(high, low, prime)
	return rest
}

// power returns base to an exponent, modulo prime.
func power(exponent uint64) uint64 {
	result, factor := uint64(1), uint64(base)
	for ; exponent > 0; exponent >>= 1 {
		if exponent&1 == 1 {
			result = times(result, factor)
		}
		factor = times(factor, factor)
	}
	return result
}

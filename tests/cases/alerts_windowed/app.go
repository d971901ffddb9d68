// Alerts about users whose transactions of nine seconds, looked at every three, add up to a large sum.
package main

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

const limit = 2000

type transaction struct {
	User   string
	Amount int
}

func setup(args []string) *stream.Application {
	options := flag.NewFlagSet("alerts", flag.ExitOnError)
	in := options.String("in", "", "where to listen")
	out := options.String("out", "", "where to send")
	options.Parse(args)

	app := stream.New("Alerts (windowed)")
	source := stream.TCPSource(*in, stream.U32BE, decode).EventTime(eventTime)
	keyed := stream.KeyBy(stream.From(app, "Transactions", source), "user", func(t transaction) string { return t.User })
	window := stream.Range{Length: 9 * time.Second, Slide: 3 * time.Second}
	totals := stream.RangeWindow(keyed, window, stream.Aggregation[transaction, int, string]{
		Name:    "Total",
		Initial: func() int { return 0 },
		Update:  func(t transaction, sum int) int { return sum + t.Amount },
		Combine: func(earlier, later int) int { return earlier + later },
		Output:  alert,
	})
	totals.To(stream.TCPSink(*out, func(text string) ([]byte, error) { return []byte(text + "\n"), nil }))
	return app
}

// decode reads "TIME USER AMOUNT".
func decode(payload []byte) (transaction, error) {
	_, rest, _ := strings.Cut(string(payload), " ")
	user, digits, _ := strings.Cut(rest, " ")
	amount, err := strconv.Atoi(digits)
	return transaction{user, amount}, err
}

// eventTime reads when a transaction was made, in milliseconds since 1970.
func eventTime(payload []byte) time.Time {
	digits, _, _ := strings.Cut(string(payload), " ")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.UnixMilli(ms)
}

func alert(user string, sum int) (string, error) {
	switch {
	case sum > limit:
		return fmt.Sprintf("%s deposited %d", user, sum), nil
	case sum < -limit:
		return fmt.Sprintf("%s withdrew %d", user, -sum), nil
	}
	return "", stream.ErrSkip
}

func main() { worker.Main(setup) }

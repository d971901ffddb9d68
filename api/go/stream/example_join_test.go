package stream_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// side is a message of one of the two joined streams.
type side struct {
	Number      int
	Order, Text string
}

func sidesOf(app *stream.Application, name string, number int) stream.Stream[side] {
	source := stream.TCPSource(fmt.Sprint("127.0.0.1:", 7010+number), stream.Newline, func(line []byte) (side, error) {
		order, text, _ := strings.Cut(string(line), " ")
		return side{number, order, text}, nil
	})
	return stream.KeyBy(stream.From(app, name, source), "order of "+name, func(s side) string { return s.Order })
}

// A join of two streams: an order is joined with its payment if both arrive within ten minutes.
func ExampleOnTimer_join() {
	app := stream.New("Join")
	orders, payments := sidesOf(app, "orders", 0), sidesOf(app, "payments", 1)
	joined := stream.MapState(stream.Merge(orders, payments), "join", func(ctx context.Context, m side, both *[2]string) (string, error) {
		if both[0]+both[1] == "" {
			stream.SetTimerAfter(ctx, "over", 10*time.Minute)
		}
		both[m.Number] = m.Text
		if both[0] == "" || both[1] == "" {
			return "", stream.ErrSkip
		}
		return fmt.Sprintf("%s: %s, %s", m.Order, both[0], both[1]), nil
	})
	stream.OnTimer(joined, "over", func(_ context.Context, timer *stream.Timer, both *[2]string) (string, error) {
		timer.DeleteState()
		if both[0] != "" && both[1] != "" {
			return "", stream.ErrSkip
		}
		return string(timer.Key) + ": alone", nil
	}).To(textSink)

	run := wallarootest.New(exampleT{}, app)
	run.Send("orders", "1 bread", "2 milk")
	run.Advance(400 * time.Second)
	run.Send("payments", "2 card", "3 cash")
	run.Advance(600 * time.Second)
	for _, line := range run.Lines("Join") {
		fmt.Println(line)
	}
	// Output:
	// 2: milk, card
	// 1: alone
	// 3: alone
}

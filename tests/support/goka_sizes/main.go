// Command goka_sizes is goka_large.py in Go: two groups for values of any size. A message `WHERE SIZE` writes SIZE bytes there; others
// are counted. Names of topics and groups begin with `go-`.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

const (
	out   goka.Stream = "go-large-out"
	tight goka.Stream = "go-large-tight"
	large goka.Group  = "go-large"
)

var table = goka.GroupTable(large)

// write does what a message to the first group says.
func write(ctx goka.Context, value any) {
	message := value.(string)
	where, digits, _ := strings.Cut(message[:min(len(message), 24)], " ")
	size, _ := strconv.Atoi(digits)
	filling := strings.Repeat("x", size)
	switch goka.Stream(where) {
	case out, tight:
		ctx.Emit(goka.Stream(where), ctx.Key(), filling)
	case "table":
		ctx.SetValue(filling)
	case "loop":
		ctx.Loopback(ctx.Key(), filling)
	case "read":
		ctx.SetValue(strconv.Itoa(len(message)))
	default:
		known, _ := ctx.Value().(string)
		count, _ := strconv.Atoi(known)
		ctx.SetValue(strconv.Itoa(count + 1))
	}
}

// looped keeps how much came over the loop.
func looped(ctx goka.Context, value any) { ctx.SetValue(fmt.Sprintf("looped %d", len(value.(string)))) }

// joined reports how much the first group's table has, joined and looked up.
func joined(ctx goka.Context, _ any) {
	first, _ := ctx.Join(table).(string)
	second, _ := ctx.Lookup(table, ctx.Key()).(string)
	ctx.Emit(out, ctx.Key(), fmt.Sprintf("[%d, %d]", len(first), len(second)))
}

func main() {
	config := goka.DefaultConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	goka.ReplaceGlobalConfig(config)
	text := new(codec.String)
	first := goka.DefineGroup(large, goka.Input("go-large-in", text, write), goka.Loop(text, looped), goka.Persist(text),
		goka.Output(out, text), goka.Output(tight, text))
	second := goka.DefineGroup("go-asking", goka.Input("go-large-ask", text, joined), goka.Join(table, text), goka.Lookup(table, text),
		goka.Output(out, text))
	goka.Serve(strings.Split(os.Getenv("BROKERS"), ","), first.WithOptions(goka.WithDeadLetters()), second.WithOptions(goka.WithDeadLetters()))
}

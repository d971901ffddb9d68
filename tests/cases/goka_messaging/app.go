// Command goka_messaging passes messages between users: spammers are found and blocked, and what is left is delivered to its receivers.
package main

import (
	"fmt"
	"strings"

	wa "wallarooapi"
	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

const (
	messages goka.Stream = "messages"
	received goka.Stream = "received"
	commands goka.Stream = "commands"
	limit                = 3
)

var (
	blocked = goka.GroupTable("blocker")
	text    = new(codec.String)
)

// block blocks or unblocks a user.
func block(ctx goka.Context, command any) {
	if command == "block" {
		ctx.SetValue("blocked", goka.WithCtxEmitHeaders(goka.Headers{"by": []byte("detector")}))
	} else {
		ctx.Delete()
	}
}

// count counts what a user has sent; too much of it is the detector's own message to itself.
func count(ctx goka.Context, _ any) {
	sent, _ := ctx.Value().(int64)
	ctx.SetValue(sent + 1)
	if sent+1 == limit {
		ctx.Loopback(ctx.Key(), "too many")
	}
}

// accuse has a user blocked, and counts from 0 again.
func accuse(ctx goka.Context, reason any) {
	ctx.SetValue(int64(0))
	ctx.Emit(commands, ctx.Key(), "block", goka.WithCtxEmitHeaders(goka.Headers{"reason": []byte(reason.(string))}))
}

// deliver passes a message `RECEIVER TEXT` on, unless its sender is blocked.
func deliver(ctx goka.Context, message any) {
	receiver, said, _ := strings.Cut(message.(string), " ")
	if receiver == "" || said == "" {
		ctx.Fail(fmt.Errorf("message %q has no receiver", message))
	}
	if ctx.Join(blocked) == nil {
		from := goka.WithCtxEmitHeaders(goka.Headers{"from": []byte(ctx.Key())})
		ctx.Emit(received, receiver, ctx.Key()+": "+said, from)
	}
}

func main() {
	groups := []*goka.GroupGraph{
		goka.DefineGroup("blocker", goka.Input(commands, text, block), goka.Persist(text)),
		goka.DefineGroup("detector",
			goka.Input(messages, text, count),
			goka.Loop(text, accuse),
			goka.Persist(new(codec.Int64)),
			goka.Output(commands, text),
		),
		goka.DefineGroup("delivery", goka.Input(messages, text, deliver), goka.Join(blocked, text), goka.Output(received, text)),
	}
	for i, group := range groups {
		groups[i] = group.WithOptions(goka.WithDeadLetters())
	}
	goka.Serve(wa.Args[1:], groups...)
}

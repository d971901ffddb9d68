// Command goka_case has the group of app.py.
package main

import (
	"fmt"
	"strconv"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

func deposit(ctx goka.Context, message any) {
	amount, balance, factor, name := message.(int64), int64(0), int64(1), "nobody"
	if value := ctx.Value(); value != nil {
		balance = value.(int64)
	}
	if joined := ctx.Join("factors"); joined != nil {
		factor = joined.(int64)
	}
	if found := ctx.Lookup("names", ctx.Key()); found != nil {
		name = found.(string)
	}
	balance += amount * factor
	ctx.SetValue(balance)
	ctx.Emit("receipts", ctx.Key(), fmt.Sprintf("%d of %s", balance, name))
	if amount%5 == 0 {
		ctx.Loopback("bonus of "+ctx.Key(), amount/5)
	}
}

func bonus(ctx goka.Context, amount any) {
	var sum int64
	if value := ctx.Value(); value != nil {
		sum = value.(int64)
	}
	ctx.SetValue(sum + amount.(int64))
}

func forget(ctx goka.Context, metadata any) {
	least, err := strconv.ParseInt(metadata.(string), 10, 64)
	if err != nil {
		ctx.Fail(err)
	}
	if ctx.Value().(int64) < least {
		ctx.Delete()
	}
}

func main() {
	number, text := new(codec.Int64), new(codec.String)
	graph := goka.DefineGroup("balances",
		goka.Input("deposits", number, deposit),
		goka.Loop(number, bonus),
		goka.Join("factors", number),
		goka.Lookup("names", text),
		goka.Persist(number),
		goka.Output("receipts", text),
		goka.Visitor("forget", forget),
	)
	goka.Serve([]string{"127.0.0.1:1"}, graph.WithOptions(goka.WithDeadLetters()))
}

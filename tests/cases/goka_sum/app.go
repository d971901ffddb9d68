// Command goka_sum adds up two topics, in a currency that a lookup converts; a visitor writes and forgets small sums.
package main

import (
	"strconv"

	wa "wallarooapi"
	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

const rates goka.Table = "rates"

// add adds an amount in the currency that a header names, else in euros; a message without a value ends the account.
func add(ctx goka.Context, amount any) {
	if amount == nil {
		ctx.Delete()
		return
	}
	currency := "EUR"
	if named, has := ctx.Headers()["currency"]; has {
		currency = string(named)
	}
	rate, has := ctx.Lookup(rates, currency).(int64)
	if !has {
		rate = 1
	}
	sum, _ := ctx.Value().(int64)
	ctx.SetValue(sum + rate*amount.(int64))
}

// forget writes down and forgets sums below that of the visit.
func forget(ctx goka.Context, metadata any) {
	least, err := strconv.ParseInt(metadata.(string), 10, 64)
	if err != nil {
		ctx.Fail(err)
	}
	if sum := ctx.Value().(int64); sum < least {
		ctx.Emit("forgotten", ctx.Key(), sum)
		ctx.Delete()
	}
}

func main() {
	number := new(codec.Int64)
	goka.Serve(wa.Args[1:], goka.DefineGroup("sums",
		goka.Inputs(goka.Streams{"deposits", "payments"}, number, add),
		goka.Lookup(rates, number),
		goka.Persist(number),
		goka.Output("forgotten", number),
		goka.Visitor("forget", forget),
	).WithOptions(goka.WithNilHandling(goka.NilProcess)))
}

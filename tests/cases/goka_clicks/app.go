// Command goka_clicks counts how often users clicked, and joins the counts to purchases in a second group. A third group
// has the users who clicked lately.
package main

import (
	"fmt"
	"time"

	wa "wallarooapi"
	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

var table = goka.GroupTable("click-counts")

func count(ctx goka.Context, _ any) {
	clicks, _ := ctx.Value().(int64)
	ctx.SetValue(clicks + 1)
}

func report(ctx goka.Context, item any) {
	clicks := "None"
	if found := ctx.Join(table); found != nil {
		clicks = fmt.Sprint(found)
	}
	ctx.Emit("reports", ctx.Key(), fmt.Sprintf("%s after %s clicks", item, clicks))
}

func main() {
	config := goka.DefaultConfig()
	config.Consumer.Offsets.Initial = -2 // the oldest record
	goka.ReplaceGlobalConfig(config)
	goka.Serve(wa.Args[1:],
		goka.DefineGroup("click-counts",
			goka.Input("user-clicks", new(codec.String), count),
			goka.Persist(new(codec.Int64)),
		),
		goka.DefineGroup("buyers",
			goka.Input("purchases", new(codec.String), report),
			goka.Join(table, new(codec.Int64)),
			goka.Output("reports", new(codec.String)),
		),
		goka.DefineGroup("lately",
			goka.Input("user-clicks", new(codec.String), count),
			goka.Persist(new(codec.Int64)),
			goka.TTL(3*time.Second),
		),
	)
}

package wallarootest_test

import (
	"context"
	"fmt"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

type sale struct {
	Shop   string  `json:"shop"`
	Amount float64 `json:"amount"`
	Clerk  *string `json:"clerk"`
}

type shopTotal struct {
	Shop  string  `json:"shop"`
	Total float64 `json:"total"`
}

// sales declares an application between DataFrames.
func sales() *stream.Application {
	app := stream.New("Sales")
	byShop := stream.KeyBy(stream.From(app, "sales", stream.DataFrameSource[sale]()), "by shop", func(s sale) string { return s.Shop })
	stream.MapState(byShop, "total", func(_ context.Context, s sale, total *float64) (shopTotal, error) {
		*total += s.Amount
		return shopTotal{s.Shop, *total}, nil
	}).To(stream.DataFrameSink[shopTotal]().Named("totals"))
	return app
}

// Rows are sent and compared as structs; a text is the JSON of a row.
func ExampleApp_Send_rows() {
	app := wallarootest.New(t, sales())
	app.Send("sales", sale{Shop: "north", Amount: 2}, sale{Shop: "north", Amount: 0.5})
	app.Send("sales", `{"shop": "south", "amount": 1, "clerk": "ann"}`, `{"shop": "south", "amount": null, "clerk": null}`)
	wallarootest.Equal(t, wallarootest.Messages[shopTotal](app, "totals"), []shopTotal{{"north", 2}, {"north", 2.5}, {"south", 1}})
	fmt.Println(app.Lines("totals")[1])
	fmt.Println(app.DeadLetters()[0].Reason)
	// Output:
	// {"shop":"north","total":2.5}
	// column amount is null; only the type *float64 takes null
}

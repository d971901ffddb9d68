package goka_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
	"wallarooapi/goka/tester"
)

// The program of Goka's introduction counts clicks. In this example it runs under Goka's tester. Without the option
// WithTester, and with the addresses of brokers, it runs on Spark.
func Example() {
	process := func(ctx goka.Context, _ any) {
		counter, _ := ctx.Value().(int64)
		ctx.SetValue(counter + 1)
		fmt.Println(ctx.Key(), counter+1)
	}
	graph := goka.DefineGroup("my-group",
		goka.Input("user-clicks", new(codec.String), process),
		goka.Persist(new(codec.Int64)),
	)
	kafka := tester.New(&testing.T{})
	processor, err := goka.NewProcessor([]string{"127.0.0.1:9092"}, graph, goka.WithTester(kafka))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- processor.Run(ctx) }()
	kafka.Consume("user-clicks", "alice", "click")
	kafka.Consume("user-clicks", "alice", "click")
	fmt.Println(kafka.TableValue(goka.GroupTable("my-group"), "alice"))
	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// alice 1
	// alice 2
	// 2
}

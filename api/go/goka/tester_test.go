package goka_test

import (
	"context"
	"strings"
	"testing"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
	"wallarooapi/goka/tester"
)

// count is the callback of Goka's introduction.
func count(ctx goka.Context, _ any) {
	var counter int64
	if value := ctx.Value(); value != nil {
		counter = value.(int64)
	}
	ctx.SetValue(counter + 1)
}

func counting() *goka.GroupGraph {
	return goka.DefineGroup("counts",
		goka.Input("clicks", new(codec.String), count),
		goka.Persist(new(codec.Int64)),
	)
}

// started runs a processor on Goka's tester and returns when it is ready. stop ends the processor and returns its
// error.
func started(t *testing.T, kafka *tester.Tester, graph *goka.GroupGraph) (processor *goka.Processor, stop func() error) {
	t.Helper()
	processor, err := goka.NewProcessor(nil, graph, goka.WithTester(kafka))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(ctx) }()
	if err := processor.WaitForReady(); err != nil {
		t.Fatal(err)
	}
	return processor, func() error {
		cancel()
		return <-ended
	}
}

// TestUnderGokasTester runs a graph of this package on Goka's own processor.
func TestUnderGokasTester(t *testing.T) {
	kafka := tester.New(t)
	processor, stop := started(t, kafka, counting())
	for range 3 {
		kafka.Consume("clicks", "alice", "click")
	}
	if value := kafka.TableValue(goka.GroupTable("counts"), "alice"); value != int64(3) {
		t.Errorf("the table has %v", value)
	}
	if value, err := processor.Get("alice"); value != int64(3) || err != nil || !processor.Recovered() {
		t.Errorf("Get returned %v, %v", value, err)
	}
	if err := stop(); err != nil || processor.Error() != nil {
		t.Error(err)
	}
}

// TestUnderGokasTesterFails compares the text of a failure.
func TestUnderGokasTesterFails(t *testing.T) {
	kafka := tester.New(t)
	graph := goka.DefineGroup("failing", goka.Input("in", new(codec.String), func(ctx goka.Context, _ any) { ctx.Value() }))
	processor, err := goka.NewProcessor(nil, graph, goka.WithTester(kafka))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(context.Background()) }()
	_ = processor.WaitForReady()
	kafka.Consume("in", "k", "v")
	const want = "error processing message (partition=0): panic in callback: Cannot access state in stateless processor"
	if err := <-ended; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
}

// TestALookupUnderGokasTester sets values in the looked-up table directly, because a record that Consume writes to the
// table's topic reaches the view of the processor at an unknown time.
func TestALookupUnderGokasTester(t *testing.T) {
	kafka := tester.New(t)
	graph := goka.DefineGroup("prices",
		goka.Input("orders", new(codec.String), func(ctx goka.Context, item any) {
			ctx.SetValue(ctx.Lookup("items-table", item.(string)))
		}),
		goka.Lookup("items-table", new(codec.Int64)),
		goka.Persist(new(codec.Int64)),
	)
	_, stop := started(t, kafka, graph)
	for price := range int64(50) {
		kafka.SetTableValue("items-table", "apple", price)
		kafka.Consume("orders", "alice", "apple")
		if value := kafka.TableValue(goka.GroupTable("prices"), "alice"); value != price {
			t.Errorf("the order has the price %v, not %d", value, price)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"testing"

	"wallarooapi/goka"
	"wallarooapi/goka/tester"
)

// start runs a group on Goka's own tester, without Kafka and Spark, until the test ends.
func start(t *testing.T, kafka *tester.Tester, graph *goka.GroupGraph) {
	processor, err := goka.NewProcessor(nil, graph, goka.WithTester(kafka))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := processor.WaitForReady(); err != nil {
		t.Fatal(err)
	}
}

func TestClicksAreCounted(t *testing.T) {
	kafka := tester.New(t)
	start(t, kafka, clicks)
	kafka.Consume(string(clickTopic), "ann", "click")
	kafka.Consume(string(clickTopic), "ann", "click")
	if value := kafka.TableValue(clickTable, "ann"); value != int64(2) {
		t.Errorf("the table has %v", value)
	}
}

func TestAStatusSaysHowMuchItsUserHadClicked(t *testing.T) {
	kafka := tester.New(t)
	start(t, kafka, status)
	kafka.Consume(string(clickTable), "ann", int64(2))
	for user, text := range map[string]string{"ann": "away", "bob": "@ann", "dan": "new"} {
		kafka.Consume(string(statusTopic), user, text)
	}
	wanted := map[string]string{"ann": "away after 2 clicks", "bob": "ann has clicked 2 times", "dan": "new after 0 clicks"}
	for user, text := range wanted {
		if value := kafka.TableValue(goka.GroupTable(statusGroup), user); value != text {
			t.Errorf("%s: %v instead of %s", user, value, text)
		}
	}
}

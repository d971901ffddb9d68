// Command goka_count counts clicks with Goka's API. The benchmark builds it twice: with the import paths below, and with those
// of Goka itself in their place. Nothing else differs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

func count(ctx goka.Context, _ any) {
	var counter int64
	if value := ctx.Value(); value != nil {
		counter = value.(int64)
	}
	ctx.SetValue(counter + 1)
}

func topics() goka.TopicManagerBuilder {
	config := goka.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1
	return goka.TopicManagerBuilderWithTopicManagerConfig(config)
}

func main() {
	group, topic := goka.Group(os.Getenv("GROUP")), goka.Stream(os.Getenv("TOPIC"))
	graph := goka.DefineGroup(group, goka.Input(topic, new(codec.String), count), goka.Persist(new(codec.Int64)))
	processor, err := goka.NewProcessor(strings.Split(os.Getenv("BROKERS"), ","), graph, goka.WithTopicManagerBuilder(topics()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		if processor.WaitForReadyContext(ctx) == nil {
			fmt.Println("READY")
		}
	}()
	if err := processor.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// Command goka_move counts the messages of each key; "delete" takes the key out of the table, and "again" sends a message to the group's own
// loop. It is built with the import paths below, and with those of Goka itself in their place, without the lines that end in "ours".
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

func count(ctx goka.Context, message any) {
	if message == "delete" {
		ctx.Delete()
		return
	}
	var counter int64
	if value := ctx.Value(); value != nil {
		counter = value.(int64)
	}
	ctx.SetValue(counter + 1)
	if message == "again" {
		ctx.Loopback(ctx.Key(), "click")
	}
}

func topics() goka.TopicManagerBuilder {
	config := goka.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1
	return goka.TopicManagerBuilderWithTopicManagerConfig(config)
}

func main() {
	var inputs goka.Streams
	for _, topic := range strings.Split(os.Getenv("TOPIC"), ",") {
		inputs = append(inputs, goka.Stream(topic))
	}
	graph := goka.DefineGroup(
		goka.Group(os.Getenv("GROUP")),
		goka.Inputs(inputs, new(codec.String), count),
		goka.Loop(new(codec.String), count),
		goka.Persist(new(codec.Int64)),
	)
	options := []goka.ProcessorOption{goka.WithTopicManagerBuilder(topics())}
	options = append(options, goka.WithContinueGoka()) // ours
	processor, err := goka.NewProcessor(strings.Split(os.Getenv("BROKERS"), ","), graph, options...)
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

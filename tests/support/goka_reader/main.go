// Command goka_reader is a group of Goka's own, which joins and looks up a table that another system writes. Two options of ours let it read
// what transactions write; everything else is github.com/lovoo/goka.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/lovoo/goka/storage"

	wallaroo "wallarooapi/goka"
)

var table = goka.Table(os.Getenv("TABLE"))

func ask(ctx goka.Context, message any) {
	key, _ := strings.CutPrefix(message.(string), "about ")
	ctx.SetValue(fmt.Sprintf("joined %v, looked up %v", ctx.Join(table), ctx.Lookup(table, key)))
}

func main() {
	config := wallaroo.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1
	graph := goka.DefineGroup(goka.Group(os.Getenv("GROUP")), goka.Input(goka.Stream(os.Getenv("TOPIC")), new(codec.String), ask),
		goka.Join(table, new(codec.Int64)), goka.Lookup(table, new(codec.Int64)), goka.Persist(new(codec.String)))
	processor, err := goka.NewProcessor(strings.Split(os.Getenv("BROKERS"), ","), graph, goka.WithStorageBuilder(storage.MemoryBuilder()),
		goka.WithTopicManagerBuilder(wallaroo.TopicManagerBuilderWithTopicManagerConfig(config)),
		goka.WithConsumerSaramaBuilder(wallaroo.DefaultSaramaConsumerBuilder))
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

// Command click_counts is the program of Goka's introduction, with other import paths. An emitter writes clicks of
// users, a processor counts the clicks in the table of its group, and a view serves the counts.
//
//	click_counts emit       writes a click every 100 ms
//	click_counts process    counts the clicks
//	click_counts view       serves the count of a user at http://127.0.0.1:9095/USER
//	click_counts            does all three
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

const (
	topic goka.Stream = "user-clicks"
	group goka.Group  = "click-counts"
	place             = "127.0.0.1:9095"
)

// count is called for each click. It increments the user's number in the table of the group.
func count(ctx goka.Context, _ any) {
	var counter int64
	if value := ctx.Value(); value != nil {
		counter = value.(int64)
	}
	counter++
	ctx.SetValue(counter)
}

var graph = goka.DefineGroup(group,
	goka.Input(topic, new(codec.String), count),
	goka.Persist(new(codec.Int64)),
)

func emit(ctx context.Context, brokers []string) error {
	emitter, err := goka.NewEmitter(brokers, topic, new(codec.String))
	if err != nil {
		return err
	}
	defer emitter.Finish()
	for number := 0; ; number++ {
		if err := emitter.EmitSync(fmt.Sprintf("user-%d", number%10), "click"); err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

func process(ctx context.Context, brokers []string) error {
	processor, err := goka.NewProcessor(brokers, graph, goka.WithTopicManagerBuilder(topics()))
	if err != nil {
		return err
	}
	return processor.Run(ctx)
}

func view(ctx context.Context, brokers []string) error {
	counts, err := goka.NewView(brokers, goka.GroupTable(group), new(codec.Int64))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: place, Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		value, err := counts.Get(strings.TrimPrefix(request.URL.Path, "/"))
		if err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(answer).Encode(value)
	})}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Print(err)
		}
	}()
	return counts.Run(ctx)
}

// topics makes topics with one copy of each partition, because there is only one broker.
func topics() goka.TopicManagerBuilder {
	config := goka.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1
	return goka.TopicManagerBuilderWithTopicManagerConfig(config)
}

// prepare creates the topic of clicks, because Goka does not create input topics. It also creates the table, because
// the view may start before the processor.
func prepare(brokers []string) error {
	manager, err := topics()(brokers)
	if err != nil {
		return err
	}
	defer manager.Close()
	if err := manager.EnsureStreamExists(string(topic), 8); err != nil {
		return err
	}
	return manager.EnsureTableExists(string(goka.GroupTable(group)), 8)
}

func main() {
	brokers := strings.Split(os.Getenv("BROKERS"), ",")
	if brokers[0] == "" {
		brokers = []string{"127.0.0.1:9092"}
	}
	goka.Serve(brokers, graph)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parts := map[string]func(context.Context, []string) error{"emit": emit, "process": process, "view": view}
	chosen := os.Args[1:]
	if len(chosen) == 0 {
		chosen = []string{"process", "emit", "view"}
	}
	if err := prepare(brokers); err != nil {
		log.Fatal(err)
	}
	var running sync.WaitGroup
	for _, name := range chosen {
		running.Add(1)
		go func() {
			defer running.Done()
			defer stop()
			if err := parts[name](ctx, brokers); err != nil {
				log.Printf("%s: %v", name, err)
			}
		}()
	}
	running.Wait()
}

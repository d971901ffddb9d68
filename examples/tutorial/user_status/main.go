// Command user_status is the example of two applications of Goka's introduction: click-count counts what users click, and user-status
// joins its table to say how much a user had clicked when a status came. Each may be a program of its own, or both are one:
//
//	user_status clicks      counts; http://127.0.0.1:9096/USER has the count
//	user_status status      joins; http://127.0.0.1:9097/USER has the status
//	wallaroo run DIR        runs both groups as one application
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

const (
	clickTopic  goka.Stream = "user-clicks"
	statusTopic goka.Stream = "user-status-updates"
	clickGroup  goka.Group  = "click-count"
	statusGroup goka.Group  = "user-status"
	reset                   = "reset" // the visitor that begins to count again
)

var clickTable = goka.GroupTable(clickGroup)

func number(value any) int64 {
	if value == nil {
		return 0
	}
	return value.(int64)
}

func count(ctx goka.Context, _ any) { ctx.SetValue(number(ctx.Value()) + 1) }

// describe is called for each status of a user. "@FRIEND" in its place asks how much another user has clicked.
func describe(ctx goka.Context, message any) {
	status := message.(string)
	if friend, asked := strings.CutPrefix(status, "@"); asked {
		ctx.SetValue(fmt.Sprintf("%s has clicked %d times", friend, number(ctx.Lookup(clickTable, friend))))
		return
	}
	ctx.SetValue(fmt.Sprintf("%s after %d clicks", status, number(ctx.Join(clickTable))))
}

var clicks = goka.DefineGroup(clickGroup,
	goka.Input(clickTopic, new(codec.String), count),
	goka.Persist(new(codec.Int64)),
	goka.Visitor(reset, func(ctx goka.Context, _ any) { ctx.Delete() }),
)

var status = goka.DefineGroup(statusGroup,
	goka.Input(statusTopic, new(codec.String), describe),
	goka.Join(clickTable, new(codec.Int64)),
	goka.Lookup(clickTable, new(codec.Int64)),
	goka.Persist(new(codec.String)),
)

// run runs the processor of one group, with a service that answers what its table has for a user.
func run(ctx context.Context, brokers []string, graph *goka.GroupGraph, place string) error {
	config := goka.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1 // there is one broker
	processor, err := goka.NewProcessor(brokers, graph,
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithTopicManagerConfig(config)))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: place, Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		value, err := processor.Get(strings.TrimPrefix(request.URL.Path, "/"))
		if err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(answer, value)
	})}
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Print(err)
		}
	}()
	defer server.Close()
	return processor.Run(ctx)
}

func main() {
	brokers := strings.Split(os.Getenv("BROKERS"), ",")
	if brokers[0] == "" {
		brokers = []string{"127.0.0.1:9092"}
	}
	goka.Serve(brokers, clicks, status)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	graph, place := clicks, "127.0.0.1:9096"
	if len(os.Args) > 1 && os.Args[1] == "status" {
		graph, place = status, "127.0.0.1:9097"
	}
	if err := run(ctx, brokers, graph, place); err != nil {
		log.Fatal(err)
	}
}

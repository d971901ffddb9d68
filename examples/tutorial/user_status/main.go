// Command user_status has the two groups of Goka's introduction. click-count counts the clicks of users. user-status
// joins the table of click-count, and says how often a user had clicked when a status came. The groups run as two
// programs or as one:
//
//	user_status clicks      counts clicks, and serves the counts at http://127.0.0.1:9096/USER
//	user_status status      joins the counts, and serves the statuses at http://127.0.0.1:9097/USER
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
	reset                   = "reset" // name of the visitor that deletes all counts
)

var clickTable = goka.GroupTable(clickGroup)

func number(value any) int64 {
	if value == nil {
		return 0
	}
	return value.(int64)
}

func count(ctx goka.Context, _ any) { ctx.SetValue(number(ctx.Value()) + 1) }

// describe is called for each status of a user. A status "@FRIEND" asks how often another user has clicked.
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

// run runs the processor of one group, and an HTTP server that returns a user's value in the group's table.
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

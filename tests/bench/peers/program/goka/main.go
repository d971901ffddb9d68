// The work of `make bench-peers` on Goka's own processor: at least once, a table for each group.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/lovoo/goka/storage"
	"golang.org/x/sync/errgroup"
)

type reading struct {
	ID         int64  `json:"id"`
	User       string `json:"user"`
	Fahrenheit int64  `json:"fahrenheit"`
	Place      string `json:"place"`
}

type converted struct {
	ID      int64  `json:"id"`
	User    string `json:"user"`
	Celsius int64  `json:"celsius"`
	Place   string `json:"place"`
}

var (
	brokers = []string{os.Getenv("BROKER")}
	run     = os.Getenv("RUN")
	input   = goka.Stream(os.Getenv("INPUT"))
	output  = goka.Stream(os.Getenv("OUTPUT"))
	words   = goka.Stream(run + "-words")
)

// count returns the next count of the key, as text.
func count(ctx goka.Context) string {
	n, _ := ctx.Value().(int64)
	ctx.SetValue(n + 1)
	return ctx.Key() + " => " + strconv.FormatInt(n+1, 10)
}

func split(ctx goka.Context, line any) {
	for _, word := range strings.Fields(line.(string)) {
		ctx.Emit(words, word, word)
	}
}

func countWord(ctx goka.Context, _ any) { ctx.Emit(output, ctx.Key(), count(ctx)) }

func countMessage(ctx goka.Context, message any) {
	_, payload, _ := strings.Cut(message.(string), " ")
	ctx.Emit(output, ctx.Key(), count(ctx)+" "+payload)
}

func convert(ctx goka.Context, text any) {
	var r reading
	if err := json.Unmarshal([]byte(text.(string)), &r); err != nil {
		ctx.Fail(err)
	}
	value, err := json.Marshal(converted{r.ID, strings.ToUpper(r.User), (r.Fahrenheit - 320) * 50 / 9, r.Place})
	if err != nil {
		ctx.Fail(err)
	}
	ctx.Emit(output, r.User, string(value))
}

// groups returns the groups of the work; words go through a topic from the group that splits lines to the one that counts.
func groups() []*goka.GroupGraph {
	text := new(codec.String)
	counting := func(in goka.Stream, callback goka.ProcessCallback) *goka.GroupGraph {
		edges := []goka.Edge{goka.Input(in, text, callback), goka.Persist(new(codec.Int64)), goka.Output(output, text)}
		return goka.DefineGroup(goka.Group(run+"-count"), edges...)
	}
	switch os.Getenv("WORK") {
	case "words":
		splitting := goka.DefineGroup(goka.Group(run+"-split"), goka.Input(input, text, split), goka.Output(words, text))
		return []*goka.GroupGraph{splitting, counting(words, countWord)}
	case "keyed":
		return []*goka.GroupGraph{counting(input, countMessage)}
	}
	return []*goka.GroupGraph{goka.DefineGroup(goka.Group(run+"-convert"), goka.Input(input, text, convert), goka.Output(output, text))}
}

func main() {
	config := goka.DefaultConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	goka.ReplaceGlobalConfig(config)
	topics := goka.NewTopicManagerConfig()
	topics.Table.Replication, topics.Stream.Replication = 1, 1
	manager, err := goka.NewTopicManager(brokers, config, topics)
	if err != nil {
		log.Fatal(err)
	}
	if err := manager.EnsureStreamExists(string(words), 4); err != nil {
		log.Fatal(err)
	}
	processors, ctx := errgroup.WithContext(context.Background())
	for _, group := range groups() {
		processor, err := goka.NewProcessor(brokers, group,
			goka.WithStorageBuilder(storage.DefaultBuilder(os.Getenv("STATE"))),
			goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(config, topics)))
		if err != nil {
			log.Fatal(err)
		}
		processors.Go(func() error { return processor.Run(ctx) })
	}
	log.Fatal(processors.Wait())
}

// Command goka_messages is the messaging example of Goka, with four processors in one program that run together: users write to each
// other, who writes too much is blocked, words are translated, and each user has the last messages. Names begin with PREFIX.
// SIGUSR1 unblocks everybody.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

const limit, kept = 3, 5

var (
	prefix     = os.Getenv("PREFIX")
	sent       = goka.Stream(prefix + "sent")
	received   = goka.Stream(prefix + "received")
	commands   = goka.Stream(prefix + "commands")
	words      = goka.Table(prefix + "words")
	blocker    = goka.Group(prefix + "blocker")
	text       = new(codec.String)
	unblock    = "unblock"
	collection = goka.DefineGroup(goka.Group(prefix+"collector"), goka.Input(received, text, collect), goka.Persist(list{}))
	blocking   = goka.DefineGroup(blocker, goka.Input(commands, text, block), goka.Persist(text), goka.Visitor(unblock, release))
	detection  = goka.DefineGroup(goka.Group(prefix+"detector"), goka.Input(sent, text, count), goka.Loop(text, accuse),
		goka.Persist(new(codec.Int64)), goka.Output(commands, text))
	filtering = goka.DefineGroup(goka.Group(prefix+"filter"), goka.Input(sent, text, pass), goka.Join(goka.GroupTable(blocker), text),
		goka.Lookup(words, text), goka.Output(received, text))
)

// list is the codec of the messages that a user has.
type list struct{}

func (list) Encode(value any) ([]byte, error) { return json.Marshal(value) }

func (list) Decode(data []byte) (any, error) {
	var found []string
	return found, json.Unmarshal(data, &found)
}

func block(ctx goka.Context, command any) { ctx.SetValue(command) }

func release(ctx goka.Context, _ any) { ctx.Delete() }

// count notes how often a user says hello.
func count(ctx goka.Context, message any) {
	if !strings.Contains(message.(string), "hello") {
		return
	}
	known, _ := ctx.Value().(int64)
	ctx.SetValue(known + 1)
	if known+1 == limit {
		ctx.Loopback(ctx.Key(), "too many")
	}
}

func accuse(ctx goka.Context, reason any) {
	ctx.SetValue(int64(0))
	ctx.Emit(commands, ctx.Key(), reason, goka.WithCtxEmitHeaders(goka.Headers{"by": []byte("detector")}))
}

// pass gives `RECEIVER WORD...` to the receiver, unless its sender is blocked.
func pass(ctx goka.Context, message any) {
	receiver, said, _ := strings.Cut(message.(string), " ")
	if ctx.Join(goka.GroupTable(blocker)) != nil {
		return
	}
	all := strings.Fields(said)
	for i, word := range all {
		if other, has := ctx.Lookup(words, word).(string); has {
			all[i] = other
		}
	}
	ctx.Emit(received, receiver, ctx.Key()+": "+strings.Join(all, " "))
}

func collect(ctx goka.Context, message any) {
	known, _ := ctx.Value().([]string)
	known = append(known, fmt.Sprintf("%s (%s)", message, ctx.Headers()["from"]))
	ctx.SetValue(known[max(0, len(known)-kept):])
}

type context_ = goka.Context

// signed is a context that writes the name of the program into the headers.
type signed struct{ context_ }

func (s signed) Emit(topic goka.Stream, key string, value any, options ...goka.ContextOption) {
	s.context_.Emit(topic, key, value, append(options, goka.WithCtxEmitHeaders(goka.Headers{"from": []byte("messages")}))...)
}

func main() {
	config := goka.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1
	var all []*goka.Processor
	for _, graph := range []*goka.GroupGraph{blocking, collection, detection, filtering} {
		made, err := goka.NewProcessor(strings.Split(os.Getenv("BROKERS"), ","), graph, goka.WithHasher(fnv.New32a),
			goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithTopicManagerConfig(config)),
			goka.WithContextWrapper(func(ctx goka.Context) goka.Context { return signed{ctx} }),
			goka.WithRebalanceCallback(func(a goka.Assignment) { fmt.Println(graph.Group(), "has", len(a), "partitions") }))
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, made)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go watch(ctx, all)
	if err := goka.RunTogether(ctx, all...); err != nil {
		log.Fatal(err)
	}
}

// watch says when all are ready, and unblocks users when it is asked.
func watch(ctx context.Context, all []*goka.Processor) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for _, each := range all {
		if each.WaitForReadyContext(ctx) != nil {
			return
		}
	}
	fmt.Println("READY")
	for range asked {
		visited, err := all[0].VisitAllWithStats(ctx, unblock, nil)
		fmt.Println("VISITED", visited, err)
	}
}

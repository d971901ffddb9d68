// Command goka_ledger is a group of tests: it counts the messages of two inputs by key, joins and looks up a table, and takes visits.
// Its service prints `SERVES AT ADDRESS`: /get/KEY is Processor.Get, /visit/NAME?meta=N is Processor.VisitAllWithStats.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

// entry is the value of a key: how many messages with a value, their bytes, how many without a value.
type entry struct{ messages, bytes, absent int }

func read(value any) (found entry) {
	if value != nil {
		fmt.Sscanf(value.(string), "%d %d %d", &found.messages, &found.bytes, &found.absent)
	}
	return found
}

func (e entry) text() string { return fmt.Sprintf("%d %d %d", e.messages, e.bytes, e.absent) }

func add(ctx goka.Context, message any) {
	known := read(ctx.Value())
	text, has := message.(string)
	switch {
	case text == "delete":
		ctx.Delete()
		return
	case strings.HasPrefix(text, "about "):
		table := goka.Table(os.Getenv("TABLE"))
		ctx.SetValue(fmt.Sprintf("joined %v, looked up %v", ctx.Join(table), ctx.Lookup(table, strings.TrimPrefix(text, "about "))))
		return
	case has:
		known.messages++
		known.bytes += len(text)
	default:
		known.absent++
	}
	ctx.SetValue(known.text())
}

func edges() []goka.Edge {
	found := []goka.Edge{goka.Persist(new(codec.String))}
	for _, topic := range strings.Split(os.Getenv("INPUTS"), ",") {
		found = append(found, goka.Input(goka.Stream(topic), new(codec.String), add))
	}
	if table := goka.Table(os.Getenv("TABLE")); table != "" {
		found = append(found, goka.Join(table, new(codec.String)), goka.Lookup(table, new(codec.String)))
	}
	return append(found,
		goka.Visitor("add", func(ctx goka.Context, meta any) {
			known := read(ctx.Value())
			known.messages += int(meta.(int64))
			ctx.SetValue(known.text())
		}),
		goka.Visitor("delete", func(ctx goka.Context, _ any) { ctx.Delete() }),
	)
}

func answer(processor *goka.Processor, request *http.Request) (any, error) {
	if key, isGet := strings.CutPrefix(request.URL.Path, "/get/"); isGet {
		return processor.Get(key)
	}
	meta, err := strconv.ParseInt(request.URL.Query().Get("meta"), 10, 64)
	if err != nil {
		return nil, err
	}
	return processor.VisitAllWithStats(request.Context(), strings.TrimPrefix(request.URL.Path, "/visit/"), meta)
}

func serve(processor *goka.Processor) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("SERVES AT %s\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		value, err := answer(processor, request)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(writer, value)
	}))
}

// secure reaches brokers with a login over TLS, if LOGIN=NAME:PASSWORD and the file AUTHORITY say so: by the global
// configuration, or if BUILDERS is set by all builders of a processor.
func secure(topics *goka.TopicManagerConfig) []goka.ProcessorOption {
	user, password, isSecured := strings.Cut(os.Getenv("LOGIN"), ":")
	if !isSecured {
		return nil
	}
	authority, err := os.ReadFile(os.Getenv("AUTHORITY"))
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	config := goka.DefaultConfig()
	config.Net.SASL.Enable, config.Net.SASL.User, config.Net.SASL.Password = true, user, password
	config.Net.TLS.Enable, config.Net.TLS.Config = true, &tls.Config{RootCAs: roots}
	options := []goka.ProcessorOption{goka.WithKafkaOptions(map[string]string{"kafka.ssl.ca.location": os.Getenv("AUTHORITY")})}
	if os.Getenv("BUILDERS") == "" {
		goka.ReplaceGlobalConfig(config)
		return options
	}
	return append(options, goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(config)),
		goka.WithProducerBuilder(goka.ProducerBuilderWithConfig(config)),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(config)),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(config, topics)))
}

func main() {
	config := goka.NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = 1, 1
	options := append([]goka.ProcessorOption{
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithTopicManagerConfig(config)), goka.WithNilHandling(goka.NilProcess),
	}, secure(config)...)
	if mode := os.Getenv("MODE"); mode != "" {
		options = append(options, goka.WithRunArguments("--mode", mode))
	}
	processor, err := goka.NewProcessor(strings.Split(os.Getenv("BROKERS"), ","),
		goka.DefineGroup(goka.Group(os.Getenv("GROUP")), edges()...), options...)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { log.Fatal(serve(processor)) }()
	go func() {
		if processor.WaitForReadyContext(ctx) == nil {
			fmt.Println("READY")
		}
	}()
	if err := processor.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

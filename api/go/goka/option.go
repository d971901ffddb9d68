package goka

import (
	"hash"
	"time"

	"github.com/IBM/sarama"
	theirs "github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
)

// ProcessorOption changes how a processor works.
type ProcessorOption func(*poptions, *GroupGraph)

// poptions has the values of options.
type poptions struct {
	goka     []theirs.ProcessorOption // the same for Goka's own processor, under its tester
	isTested bool
	notes    []string // options that change nothing here, and why

	log               Logger
	clientID          string
	updateCallback    UpdateCallback
	rebalanceCallback RebalanceCallback
	contextWrapper    ContextWrapper
	hasher            func() hash.Hash32 // nil: Goka's
	nilHandling       NilHandling
	defaultHeaders    Headers
	storage           storage.Builder // of lookups
	topicManager      TopicManagerBuilder
	consumer          SaramaConsumerBuilder

	keepsDeadLetters bool
	murmur2          bool
	replicas         int // of topics of table and loop; 0: the default
	runArguments     []string
	kafka            map[string]string // settings by which the runtime reaches brokers
}

func newOptions(graph *GroupGraph, options []ProcessorOption) *poptions {
	o := &poptions{
		log: DefaultLogger(), clientID: "goka-processor-" + string(graph.Group()), storage: storage.MemoryBuilder(),
		contextWrapper: func(ctx Context) Context { return ctx },
		consumer:       DefaultSaramaConsumerBuilder, kafka: map[string]string{},
	}
	for _, option := range append(append([]ProcessorOption(nil), graph.options...), options...) {
		option(o, graph)
	}
	if o.topicManager == nil {
		o.topicManager = topicManagerOf(o.replicas)
	}
	return o
}

// topicManagerOf returns Goka's builder, with so many copies of the topics it creates; 0: as many as Goka, two.
func topicManagerOf(replicas int) TopicManagerBuilder {
	if replicas == 0 {
		return DefaultTopicManagerBuilder
	}
	config := NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = replicas, replicas
	return TopicManagerBuilderWithTopicManagerConfig(config)
}

// mapped makes an option that has the same meaning here as in Goka.
func mapped(same theirs.ProcessorOption, apply func(*poptions)) ProcessorOption {
	return func(o *poptions, _ *GroupGraph) {
		o.goka = append(o.goka, same)
		apply(o)
	}
}

// noted makes an option that changes nothing here.
func noted(same theirs.ProcessorOption, note string) ProcessorOption {
	return mapped(same, func(o *poptions) { o.notes = append(o.notes, note) })
}

// WithClientID sets the name under which topic manager and lookups connect to Kafka.
func WithClientID(clientID string) ProcessorOption {
	return mapped(theirs.WithClientID(clientID), func(o *poptions) { o.clientID = clientID })
}

// WithUpdateCallback sets the function that is called for each record of a joined table. Its storage has the record's key alone.
func WithUpdateCallback(cb UpdateCallback) ProcessorOption {
	return mapped(theirs.WithUpdateCallback(cb), func(o *poptions) { o.updateCallback = cb })
}

// WithRebalanceCallback sets the function that is called once in each process, before its first message, with all partitions of the inputs.
func WithRebalanceCallback(cb RebalanceCallback) ProcessorOption {
	return mapped(theirs.WithRebalanceCallback(cb), func(o *poptions) { o.rebalanceCallback = cb })
}

// WithContextWrapper sets the function that wraps the context of a callback. It is called concurrently.
func WithContextWrapper(wrapper ContextWrapper) ProcessorOption {
	return mapped(theirs.WithContextWrapper(wrapper), func(o *poptions) { o.contextWrapper = wrapper })
}

// WithLogger sets the logger; the lines of `wallaroo run` go there too.
func WithLogger(l Logger) ProcessorOption {
	return mapped(theirs.WithLogger(l), func(o *poptions) { o.log = l })
}

// WithHasher sets the function that assigns keys to the partitions of the topics that the group writes.
func WithHasher(hasher func() hash.Hash32) ProcessorOption {
	return mapped(theirs.WithHasher(hasher), func(o *poptions) { o.hasher = hasher })
}

// WithNilHandling sets the handling of a message of an input that has no value.
func WithNilHandling(nh NilHandling) ProcessorOption {
	return mapped(theirs.WithNilHandling(nh), func(o *poptions) { o.nilHandling = nh })
}

// WithProducerDefaultHeaders sets headers of every message of Emit and Loopback.
func WithProducerDefaultHeaders(hdr Headers) ProcessorOption {
	return mapped(theirs.WithProducerDefaultHeaders(hdr), func(o *poptions) { o.defaultHeaders = hdr })
}

// WithStorageBuilder sets where lookups keep their tables; the group's own state is in the checkpoint.
func WithStorageBuilder(sb storage.Builder) ProcessorOption {
	return mapped(theirs.WithStorageBuilder(sb), func(o *poptions) { o.storage = sb })
}

// WithTopicManagerBuilder sets the builder of the manager that looks at topics, and creates those of table and loop.
func WithTopicManagerBuilder(tmb TopicManagerBuilder) ProcessorOption {
	return mapped(theirs.WithTopicManagerBuilder(tmb), func(o *poptions) { o.topicManager = tmb })
}

// WithConsumerSaramaBuilder sets the builder of the consumer that reads the tables of lookups.
func WithConsumerSaramaBuilder(cgb SaramaConsumerBuilder) ProcessorOption {
	return mapped(theirs.WithConsumerSaramaBuilder(cgb), func(o *poptions) { o.consumer = cgb })
}

// WithGroupGraphHook calls a function with the graph.
func WithGroupGraphHook(hook func(gg *GroupGraph)) ProcessorOption {
	return func(_ *poptions, graph *GroupGraph) { hook(graph) }
}

// WithConsumerGroupBuilder changes nothing: Spark reads the inputs, and there is no consumer group.
func WithConsumerGroupBuilder(cgb ConsumerGroupBuilder) ProcessorOption {
	return noted(theirs.WithConsumerGroupBuilder(cgb), "WithConsumerGroupBuilder: Spark reads the inputs, there is no consumer group")
}

// WithProducerBuilder changes nothing: the runtime writes outputs, in transactions.
func WithProducerBuilder(pb ProducerBuilder) ProcessorOption {
	return noted(theirs.WithProducerBuilder(pb), "WithProducerBuilder: the runtime writes the outputs, in transactions")
}

// WithBackoffBuilder changes nothing: the runtime connects again by itself.
func WithBackoffBuilder(bb BackoffBuilder) ProcessorOption {
	return noted(theirs.WithBackoffBuilder(bb), "WithBackoffBuilder: the runtime connects again by itself")
}

// WithBackoffResetTimeout changes nothing, as WithBackoffBuilder.
func WithBackoffResetTimeout(duration time.Duration) ProcessorOption {
	return noted(theirs.WithBackoffResetTimeout(duration), "WithBackoffResetTimeout: the runtime connects again by itself")
}

// WithPartitionChannelSize changes nothing: messages come in micro-batches.
func WithPartitionChannelSize(size int) ProcessorOption {
	return noted(theirs.WithPartitionChannelSize(size), "WithPartitionChannelSize: messages come in micro-batches")
}

// WithHotStandby changes nothing: state is in the checkpoint, from which any executor goes on.
func WithHotStandby() ProcessorOption {
	return noted(theirs.WithHotStandby(), "WithHotStandby: state is in the checkpoint, from which any executor goes on")
}

// WithRecoverAhead changes nothing: the table topic is not read to recover.
func WithRecoverAhead() ProcessorOption {
	return noted(theirs.WithRecoverAhead(), "WithRecoverAhead: the table topic is not read to recover")
}

// WithTester hands the graph over to Goka's own processor, under Goka's tester: tests run without Spark and Kafka.
func WithTester(t Tester) ProcessorOption {
	return mapped(theirs.WithTester(t), func(o *poptions) { o.isTested = true })
}

// WithDeadLetters puts a message aside on which a callback fails, and goes on with the next one, instead of ending the processor. `wallaroo
// dead-letters` shows them. Goka has no such option.
func WithDeadLetters() ProcessorOption { return own(func(o *poptions) { o.keepsDeadLetters = true }) }

// WithMurmur2 assigns keys to partitions as Kafka's own clients and Kafka Streams do, instead of Goka's FNV-1a. Goka has no such option.
func WithMurmur2() ProcessorOption { return own(func(o *poptions) { o.murmur2 = true }) }

// WithReplicas sets the number of copies of the topics of table and loop that are created. Without it a program with [Serve] has one,
// and [NewProcessor] asks for two, as Goka does, which a broker that is alone refuses; what [WithTopicManagerBuilder] says comes first.
// Goka has no such option.
func WithReplicas(count int) ProcessorOption { return own(func(o *poptions) { o.replicas = count }) }

// WithContinueGoka lets the first run begin with what a processor of Goka's own has left in Kafka: the values of the group's table, and the
// offsets that its consumer group has committed. That processor must have ended. Later runs go on as always. Goka has no such option.
func WithContinueGoka() ProcessorOption { return WithRunArguments("--continue-goka") }

// WithRunArguments adds arguments of `wallaroo run`, such as "--master" and "local[4]". Goka has no such option.
func WithRunArguments(arguments ...string) ProcessorOption {
	return own(func(o *poptions) { o.runArguments = append(o.runArguments, arguments...) })
}

// own makes an option that Goka does not have.
func own(apply func(*poptions)) ProcessorOption { return func(o *poptions, _ *GroupGraph) { apply(o) } }

// replacement is the configuration that ReplaceGlobalConfig got; nil: none.
var replacement *sarama.Config

// globalConfig returns a copy of the configuration that views and topic managers use, which Goka does not show.
func globalConfig() *sarama.Config {
	if replacement == nil {
		return DefaultConfig()
	}
	config := *replacement
	return &config
}

// startOfInputs is where the first run begins, as the configuration that ReplaceGlobalConfig got says.
var startOfInputs = "end"

// ReplaceGlobalConfig sets Goka's configuration of sarama, for emitters, views and topic managers; the first run of a group
// begins at its Consumer.Offsets.Initial, and its Producer.MaxMessageBytes bounds what callbacks write.
func ReplaceGlobalConfig(config *sarama.Config) {
	theirs.ReplaceGlobalConfig(config)
	own := *config
	replacement, startOfInputs = &own, "end"
	if config.Consumer.Offsets.Initial == sarama.OffsetOldest {
		startOfInputs = "start"
	}
}

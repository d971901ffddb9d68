package goka

import (
	"hash"
	"slices"
	"time"

	"github.com/IBM/sarama"
	theirs "github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
)

// ProcessorOption is an option of NewProcessor.
type ProcessorOption func(*poptions, *GroupGraph)

// poptions holds the values of all options of a processor.
type poptions struct {
	goka     []theirs.ProcessorOption // options for Goka's own processor under its tester
	isTested bool
	notes    []string // log lines that say why an option has no effect

	log               Logger
	clientID          string
	updateCallback    UpdateCallback
	rebalanceCallback RebalanceCallback
	contextWrapper    ContextWrapper
	hasher            func() hash.Hash32 // nil for Goka's default
	nilHandling       NilHandling
	defaultHeaders    Headers
	storage           storage.Builder // storage of lookups
	topicManager      TopicManagerBuilder
	consumer          SaramaConsumerBuilder
	reads, writes     *sarama.Config // configurations of the inputs and outputs; nil for the one of ReplaceGlobalConfig

	keepsDeadLetters bool
	murmur2          bool
	replicas         int // of the topics of table and loop; 0 for the default
	runArguments     []string
	kafka            map[string]string // settings of the runtime's connections to brokers
}

func newOptions(graph *GroupGraph, options []ProcessorOption) *poptions {
	o := &poptions{
		log: DefaultLogger(), clientID: "goka-processor-" + string(graph.Group()), storage: storage.MemoryBuilder(),
		contextWrapper: func(ctx Context) Context { return ctx },
		consumer:       DefaultSaramaConsumerBuilder, kafka: map[string]string{},
	}
	for _, option := range slices.Concat(graph.options, options) {
		option(o, graph)
	}
	if o.topicManager == nil {
		o.topicManager = topicManagerOf(o.replicas)
	}
	return o
}

// topicManagerOf returns the builder of a topic manager that creates topics with this number of replicas. 0 means two,
// Goka's default.
func topicManagerOf(replicas int) TopicManagerBuilder {
	if replicas == 0 {
		return DefaultTopicManagerBuilder
	}
	config := NewTopicManagerConfig()
	config.Table.Replication, config.Stream.Replication = replicas, replicas
	return TopicManagerBuilderWithTopicManagerConfig(config)
}

// mapped makes an option that Goka has, too. The function apply sets its value in poptions. The parameter same is
// Goka's own option, for the case that Goka's processor runs the graph (see WithTester).
func mapped(same theirs.ProcessorOption, apply func(*poptions)) ProcessorOption {
	return func(o *poptions, _ *GroupGraph) {
		o.goka = append(o.goka, same)
		apply(o)
	}
}

// noted makes an option that Goka has, but that has no effect here. The parameter note is the reason, for the log, and
// same is Goka's own option (see mapped).
func noted(same theirs.ProcessorOption, note string) ProcessorOption {
	return mapped(same, func(o *poptions) { o.notes = append(o.notes, note) })
}

// WithClientID sets the client ID with which topic manager and lookups connect to Kafka.
func WithClientID(clientID string) ProcessorOption {
	return mapped(theirs.WithClientID(clientID), func(o *poptions) { o.clientID = clientID })
}

// WithUpdateCallback sets the function that is called for each record of a joined table, to store the record's value.
// The storage that it gets contains only the value of the record's key.
func WithUpdateCallback(cb UpdateCallback) ProcessorOption {
	return mapped(theirs.WithUpdateCallback(cb), func(o *poptions) { o.updateCallback = cb })
}

// WithRebalanceCallback sets a function that gets all partitions of the inputs. Each process that runs callbacks calls
// it once, before its first message.
func WithRebalanceCallback(cb RebalanceCallback) ProcessorOption {
	return mapped(theirs.WithRebalanceCallback(cb), func(o *poptions) { o.rebalanceCallback = cb })
}

// WithContextWrapper sets a function that wraps the context of each callback. It is called concurrently.
func WithContextWrapper(wrapper ContextWrapper) ProcessorOption {
	return mapped(theirs.WithContextWrapper(wrapper), func(o *poptions) { o.contextWrapper = wrapper })
}

// WithLogger sets the logger. It also gets the output lines of `wallaroo run`.
func WithLogger(l Logger) ProcessorOption {
	return mapped(theirs.WithLogger(l), func(o *poptions) { o.log = l })
}

// WithHasher sets the hash function that determines the partition of each key in the topics that the group writes.
func WithHasher(hasher func() hash.Hash32) ProcessorOption {
	return mapped(theirs.WithHasher(hasher), func(o *poptions) { o.hasher = hasher })
}

// WithNilHandling sets how messages of the inputs without a value are handled: ignored, passed to the callback as nil,
// or passed as the codec decodes nil.
func WithNilHandling(nh NilHandling) ProcessorOption {
	return mapped(theirs.WithNilHandling(nh), func(o *poptions) { o.nilHandling = nh })
}

// WithProducerDefaultHeaders sets headers for every message of Emit and Loopback.
func WithProducerDefaultHeaders(hdr Headers) ProcessorOption {
	return mapped(theirs.WithProducerDefaultHeaders(hdr), func(o *poptions) { o.defaultHeaders = hdr })
}

// WithStorageBuilder sets the storage for the tables of lookups. It does not apply to the group's own state.
func WithStorageBuilder(sb storage.Builder) ProcessorOption {
	return mapped(theirs.WithStorageBuilder(sb), func(o *poptions) { o.storage = sb })
}

// WithTopicManagerBuilder sets the builder of the topic manager, which inspects topics and creates the topics of table
// and loop.
func WithTopicManagerBuilder(tmb TopicManagerBuilder) ProcessorOption {
	return mapped(theirs.WithTopicManagerBuilder(tmb), func(o *poptions) { o.topicManager = tmb })
}

// WithConsumerSaramaBuilder sets the builder of the consumer with which lookups read their tables.
func WithConsumerSaramaBuilder(cgb SaramaConsumerBuilder) ProcessorOption {
	return mapped(theirs.WithConsumerSaramaBuilder(cgb), func(o *poptions) { o.consumer = cgb })
}

// WithGroupGraphHook sets a function that gets the graph when a processor is made of it.
func WithGroupGraphHook(hook func(gg *GroupGraph)) ProcessorOption {
	return func(_ *poptions, graph *GroupGraph) { hook(graph) }
}

// WithConsumerGroupBuilder sets the configuration with which the runtime reads the inputs: that of a builder by
// ConsumerGroupBuilderWithConfig. Other builders have no effect, because there is no consumer group.
func WithConsumerGroupBuilder(cgb ConsumerGroupBuilder) ProcessorOption {
	config, isKnown := configOf(cgb)
	if !isKnown {
		return noted(theirs.WithConsumerGroupBuilder(cgb), "WithConsumerGroupBuilder: Spark reads the inputs, there is no consumer group; "+
			"set TLS, login and Consumer.Offsets.Initial with goka.ConsumerGroupBuilderWithConfig or goka.ReplaceGlobalConfig")
	}
	return mapped(theirs.WithConsumerGroupBuilder(cgb), func(o *poptions) { o.reads = config })
}

// WithProducerBuilder sets the configuration with which the runtime writes the outputs: that of a builder by
// ProducerBuilderWithConfig. Other builders have no effect.
func WithProducerBuilder(pb ProducerBuilder) ProcessorOption {
	config, isKnown := configOf(pb)
	if !isKnown {
		return noted(theirs.WithProducerBuilder(pb), "WithProducerBuilder: the runtime writes the outputs, in transactions; set TLS, login and "+
			"Producer.MaxMessageBytes with goka.ProducerBuilderWithConfig or goka.ReplaceGlobalConfig, and partitions with goka.WithHasher")
	}
	return mapped(theirs.WithProducerBuilder(pb), func(o *poptions) { o.writes = config })
}

// WithBackoffBuilder has no effect: the runtime reconnects by itself.
func WithBackoffBuilder(bb BackoffBuilder) ProcessorOption {
	return noted(theirs.WithBackoffBuilder(bb), "WithBackoffBuilder: the runtime connects again by itself")
}

// WithBackoffResetTimeout has no effect, like WithBackoffBuilder.
func WithBackoffResetTimeout(duration time.Duration) ProcessorOption {
	return noted(theirs.WithBackoffResetTimeout(duration), "WithBackoffResetTimeout: the runtime connects again by itself")
}

// WithPartitionChannelSize has no effect: messages are processed in micro-batches.
func WithPartitionChannelSize(size int) ProcessorOption {
	return noted(theirs.WithPartitionChannelSize(size), "WithPartitionChannelSize: messages come in micro-batches")
}

// WithHotStandby has no effect: the state is in the checkpoint, from which any executor can continue.
func WithHotStandby() ProcessorOption {
	return noted(theirs.WithHotStandby(), "WithHotStandby: state is in the checkpoint, from which any executor goes on")
}

// WithRecoverAhead has no effect: recovery does not read the table topic.
func WithRecoverAhead() ProcessorOption {
	return noted(theirs.WithRecoverAhead(), "WithRecoverAhead: the table topic is not read to recover")
}

// WithTester runs the graph on Goka's own processor under Goka's tester. Such tests need neither Spark nor Kafka.
func WithTester(t Tester) ProcessorOption {
	return mapped(theirs.WithTester(t), func(o *poptions) { o.isTested = true })
}

// WithDeadLetters makes a message a dead letter if a callback fails on it. The processor then continues, where Goka's
// would end. `wallaroo dead-letters` shows these messages. Goka has no such option.
func WithDeadLetters() ProcessorOption { return own(func(o *poptions) { o.keepsDeadLetters = true }) }

// WithMurmur2 makes the written topics assign keys to partitions with the hash of Kafka's own clients and Kafka
// Streams, in place of Goka's FNV-1a. Goka has no such option.
func WithMurmur2() ProcessorOption { return own(func(o *poptions) { o.murmur2 = true }) }

// WithReplicas sets the number of replicas for new topics of table and loop. The default is one under [Serve] and two
// under [NewProcessor], as in Goka. A single broker refuses two. [WithTopicManagerBuilder] has precedence. Goka has no
// such option.
func WithReplicas(count int) ProcessorOption { return own(func(o *poptions) { o.replicas = count }) }

// WithContinueGoka lets the first run continue the work of Goka's own processor, which must have ended. The run begins
// with the values in the group's table topic and at the committed offsets of Goka's consumer group. Later runs continue
// from the checkpoint. Goka has no such option.
func WithContinueGoka() ProcessorOption { return WithRunArguments("--continue-goka") }

// WithRunArguments adds arguments of `wallaroo run`, such as "--master" and "local[4]". Goka has no such option.
func WithRunArguments(arguments ...string) ProcessorOption {
	return own(func(o *poptions) { o.runArguments = append(o.runArguments, arguments...) })
}

// own makes an option that Goka does not have. The function apply sets its value.
func own(apply func(*poptions)) ProcessorOption { return func(o *poptions, _ *GroupGraph) { apply(o) } }

// replacement is the configuration that the program has passed to ReplaceGlobalConfig, or nil.
var replacement *sarama.Config

// orGlobal returns a configuration, or the global one instead of nil.
func orGlobal(config *sarama.Config) *sarama.Config {
	if config == nil {
		return globalConfig()
	}
	return config
}

// globalConfig returns the configuration of sarama for views and topic managers: a copy of the one that the program set
// with ReplaceGlobalConfig, or the default. Goka does not export its own.
func globalConfig() *sarama.Config {
	if replacement == nil {
		return DefaultConfig()
	}
	config := *replacement
	return &config
}

// startOf returns the position at which a group's first run begins to read its inputs.
func startOf(config *sarama.Config) string {
	if config.Consumer.Offsets.Initial == sarama.OffsetOldest {
		return "start"
	}
	return "end"
}

// ReplaceGlobalConfig sets Goka's sarama configuration for emitters, views and topic managers. Some of its values apply
// to groups, too: Net (TLS, login), Consumer.Offsets.Initial, which is where the first run begins, and
// Producer.MaxMessageBytes, which limits the size of records that callbacks write. The configurations of
// [WithConsumerGroupBuilder] and [WithProducerBuilder] have precedence.
func ReplaceGlobalConfig(config *sarama.Config) {
	theirs.ReplaceGlobalConfig(config)
	own := *config
	replacement = &own
}

package goka

import (
	"bytes"
	"encoding/json"
	"hash"
	"log"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
)

// drawnConfig returns a configuration with drawn values of the settings that apply to the runtime.
func drawnConfig(random *rand.Rand) *sarama.Config {
	config := DefaultConfig()
	if random.IntN(2) == 0 {
		config.Consumer.Offsets.Initial = sarama.OffsetOldest
	}
	if random.IntN(2) == 0 {
		config.Net.SASL.Enable, config.Net.SASL.User = true, strconv.Itoa(random.IntN(1000))
	}
	if random.IntN(2) == 0 {
		config.Producer.MaxMessageBytes = 2_000_000 + random.IntN(1000)
	}
	return config
}

// drawnBuilder returns a configuration with the options by which a processor gets it: a drawn one with the builder of it,
// or the global one with the default builder or without a builder.
func drawnBuilder[B any](
	random *rand.Rand, global *sarama.Config, with func(B) ProcessorOption, build func(*sarama.Config) B, standard B,
) (*sarama.Config, []ProcessorOption) {
	switch random.IntN(3) {
	case 0:
		config := drawnConfig(random)
		return config, []ProcessorOption{with(build(config))}
	case 1:
		return global, []ProcessorOption{with(standard)}
	}
	return global, nil
}

// described is a source or sink in the topology of a group.
type described struct {
	Kind, Start string
	Table       bool
	Options     map[string]string
}

// partsOf returns the sources and sinks of a processor's group.
func partsOf(t *testing.T, processor *Processor) (sources, sinks []described) {
	var document struct {
		Pipelines []struct{ Sources, Sinks []described }
	}
	if err := json.Unmarshal([]byte(application([]string{"k:9092"}, []*group{processor.group}).ToJson()), &document); err != nil {
		t.Fatal(err)
	}
	return document.Pipelines[0].Sources, document.Pipelines[0].Sinks
}

// TestConfigurationsOfBuildersApply compares the sources and sinks of a group with the configurations that Goka would
// use: those of the builders, or the global one without builders and with default builders.
func TestConfigurationsOfBuildersApply(t *testing.T) {
	before := replacement
	defer func() { replacement = before }()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 3))
		global := drawnConfig(random)
		ReplaceGlobalConfig(global)
		var said bytes.Buffer
		reads, reader := drawnBuilder(random, global, WithConsumerGroupBuilder, ConsumerGroupBuilderWithConfig, DefaultConsumerGroupBuilder)
		writes, writer := drawnBuilder(random, global, WithProducerBuilder, ProducerBuilderWithConfig, DefaultProducerBuilder)
		made := onTester(t, tester.New(t), counted(Join("users", new(codec.Int64))), append(append(reader, writer...), WithLogger(log.New(&said, "", 0)))...)
		sources, sinks := partsOf(t, made)
		for _, source := range sources {
			begins := map[bool]string{true: "start", false: "end"}[source.Table || reads.Consumer.Offsets.Initial == sarama.OffsetOldest]
			if source.Start != begins || source.Options["kafka.sasl.username"] != reads.Net.SASL.User {
				t.Errorf("seed %d: %+v", seed, source)
			}
		}
		for _, sink := range sinks {
			limit := ""
			if writes.Producer.MaxMessageBytes != saramasLimit {
				limit = strconv.Itoa(writes.Producer.MaxMessageBytes)
			}
			if sink.Options["kafka.sasl.username"] != writes.Net.SASL.User || sink.Options["kafka.max.request.size"] != limit {
				t.Errorf("seed %d: %+v", seed, sink)
			}
		}
		if said.Len() > 0 || len(sources) != 3 || len(sinks) != 2 {
			t.Errorf("seed %d: %d sources, %d sinks, %s", seed, len(sources), len(sinks), &said)
		}
	}
}

// TestOtherBuildersSayWhatToUse checks that the log names a remedy for a builder of the program itself, and that the
// program's function is not called.
func TestOtherBuildersSayWhatToUse(t *testing.T) {
	var said bytes.Buffer
	onTester(t, tester.New(t), counted(), WithLogger(log.New(&said, "", 0)),
		WithConsumerGroupBuilder(func([]string, string, string) (sarama.ConsumerGroup, error) { panic("called") }),
		WithProducerBuilder(func([]string, string, func() hash.Hash32) (Producer, error) { panic("called") }))
	for _, name := range []string{"goka.ConsumerGroupBuilderWithConfig", "goka.ProducerBuilderWithConfig", "goka.WithHasher"} {
		if strings.Count(said.String(), name) != 1 {
			t.Errorf("%s is not in %s", name, &said)
		}
	}
}

// TestASettingOfABuilderThatTheRuntimeCannotUse checks that NewProcessor refuses it, for inputs and for outputs.
func TestASettingOfABuilderThatTheRuntimeCannotUse(t *testing.T) {
	oauth := secured("ann", func(c *sarama.Config) { c.Net.SASL.Mechanism = sarama.SASLTypeOAuth })
	for _, option := range []ProcessorOption{
		WithConsumerGroupBuilder(ConsumerGroupBuilderWithConfig(oauth)), WithProducerBuilder(ProducerBuilderWithConfig(oauth)),
	} {
		_, err := NewProcessor(nil, counted(), WithTopicManagerBuilder(tester.New(t).TopicManagerBuilder()), option)
		if err == nil || !strings.HasPrefix(err.Error(), "the runtime cannot use Net.SASL.Mechanism OAUTHBEARER: say it with goka.WithKafkaOptions") {
			t.Error(err)
		}
	}
}

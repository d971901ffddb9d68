package goka

import (
	"sync"
	"unsafe"

	"github.com/IBM/sarama"
	theirs "github.com/lovoo/goka"
)

// configured is a builder of Goka with its configuration, or with nil for the one of ReplaceGlobalConfig.
type configured struct {
	builder any // so that no other builder gets its address
	config  *sarama.Config
}

// builders holds the builders whose configurations are known, by their addresses. The runtime calls no builder of a
// consumer group or producer, but it reads and writes as their configurations say.
var builders sync.Map

// These are Goka's builders without a configuration.
var (
	DefaultConsumerGroupBuilder = remember(theirs.DefaultConsumerGroupBuilder, nil)
	DefaultProducerBuilder      = remember(theirs.DefaultProducerBuilder, nil)
)

// ConsumerGroupBuilderWithConfig is like Goka's. Of the configuration, Net (TLS, login) and Consumer.Offsets.Initial
// apply to the runtime, which reads the inputs.
func ConsumerGroupBuilderWithConfig(config *sarama.Config) ConsumerGroupBuilder {
	return remember(theirs.ConsumerGroupBuilderWithConfig(config), config)
}

// ProducerBuilderWithConfig is like Goka's. Of the configuration, Net (TLS, login) and Producer.MaxMessageBytes apply
// to the runtime, which writes the outputs. For emitters the whole configuration applies.
func ProducerBuilderWithConfig(config *sarama.Config) ProducerBuilder {
	return remember(theirs.ProducerBuilderWithConfig(config), config)
}

// remember stores the configuration of a builder, and returns the builder.
func remember[B any](builder B, config *sarama.Config) B {
	builders.Store(addressOf(builder), configured{builder, config})
	return builder
}

// configOf returns the configuration of a builder, and whether it is known.
func configOf[B any](builder B) (config *sarama.Config, isKnown bool) {
	found, isKnown := builders.Load(addressOf(builder))
	if !isKnown {
		return nil, false
	}
	return found.(configured).config, true
}

// addressOf returns the address of a function with its captured variables. Package reflect returns only the address of
// the code, which all builders of one kind share.
func addressOf[B any](builder B) uintptr { return *(*uintptr)(unsafe.Pointer(&builder)) }

package goka

import (
	"hash"
	"time"

	"github.com/IBM/sarama"
	theirs "github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
)

// ConsumerGroupBuilderWithConfig is Goka's.
func ConsumerGroupBuilderWithConfig(config *sarama.Config) ConsumerGroupBuilder {
	return theirs.ConsumerGroupBuilderWithConfig(config)
}

// Debug is Goka's.
func Debug(gokaDebug bool, saramaDebug bool) {
	theirs.Debug(gokaDebug, saramaDebug)
}

// DefaultBackoffBuilder is Goka's.
func DefaultBackoffBuilder() (Backoff, error) {
	return theirs.DefaultBackoffBuilder()
}

// DefaultConfig is Goka's.
func DefaultConfig() *sarama.Config {
	return theirs.DefaultConfig()
}

// DefaultConsumerGroupBuilder is Goka's.
func DefaultConsumerGroupBuilder(brokers []string, group string, clientID string) (sarama.ConsumerGroup, error) {
	return theirs.DefaultConsumerGroupBuilder(brokers, group, clientID)
}

// DefaultHasher is Goka's.
func DefaultHasher() func() hash.Hash32 {
	return theirs.DefaultHasher()
}

// DefaultLogger is Goka's.
func DefaultLogger() Logger {
	return theirs.DefaultLogger()
}

// DefaultProcessorStoragePath is Goka's.
func DefaultProcessorStoragePath(group Group) string {
	return theirs.DefaultProcessorStoragePath(group)
}

// DefaultProducerBuilder is Goka's.
func DefaultProducerBuilder(brokers []string, clientID string, hasher func() hash.Hash32) (Producer, error) {
	return theirs.DefaultProducerBuilder(brokers, clientID, hasher)
}

// DefaultRebalance is Goka's.
func DefaultRebalance(a Assignment) {
	theirs.DefaultRebalance(a)
}

// DefaultSaramaConsumerBuilder is Goka's, and reads what is committed alone: tables are written in transactions.
func DefaultSaramaConsumerBuilder(brokers []string, clientID string) (sarama.Consumer, error) {
	return SaramaConsumerBuilderWithConfig(globalConfig())(brokers, clientID)
}

// DefaultTopicManagerBuilder is Goka's; its newest offset of a partition is the one after the last committed record.
func DefaultTopicManagerBuilder(brokers []string) (TopicManager, error) {
	return withVisibleEnds(theirs.DefaultTopicManagerBuilder, globalConfig)(brokers)
}

// DefaultUpdate is Goka's.
func DefaultUpdate(ctx UpdateContext, s storage.Storage, key string, value []byte) error {
	return theirs.DefaultUpdate(ctx, s, key, value)
}

// DefaultViewStoragePath is Goka's.
func DefaultViewStoragePath() string {
	return theirs.DefaultViewStoragePath()
}

// GroupTable is Goka's.
func GroupTable(group Group) Table {
	return theirs.GroupTable(group)
}

// HeadersFromSarama is Goka's.
func HeadersFromSarama(saramaHeaders []*sarama.RecordHeader) Headers {
	return theirs.HeadersFromSarama(saramaHeaders)
}

// NewEmitter is Goka's.
func NewEmitter(brokers []string, topic Stream, codec Codec, options ...EmitterOption) (*Emitter, error) {
	return theirs.NewEmitter(brokers, topic, codec, options...)
}

// NewProducer is Goka's.
func NewProducer(brokers []string, config *sarama.Config) (Producer, error) {
	return theirs.NewProducer(brokers, config)
}

// NewPromise is Goka's.
func NewPromise() *Promise {
	return theirs.NewPromise()
}

// NewPromiseWithFinisher is Goka's.
func NewPromiseWithFinisher() (*Promise, PromiseFinisher) {
	return theirs.NewPromiseWithFinisher()
}

// NewSignal is Goka's.
func NewSignal(states ...State) *Signal {
	return theirs.NewSignal(states...)
}

// NewSimpleBackoff is Goka's.
func NewSimpleBackoff(step time.Duration, max time.Duration) Backoff {
	return theirs.NewSimpleBackoff(step, max)
}

// NewTopicManager is Goka's; its newest offset of a partition is the one after the last committed record.
func NewTopicManager(brokers []string, saramaConfig *sarama.Config, topicManagerConfig *TopicManagerConfig) (TopicManager, error) {
	return TopicManagerBuilderWithConfig(saramaConfig, topicManagerConfig)(brokers)
}

// NewTopicManagerConfig is Goka's.
func NewTopicManagerConfig() *TopicManagerConfig {
	return theirs.NewTopicManagerConfig()
}

// NewView is Goka's; it takes for the end of a table what its readers get, and reads what is committed alone.
func NewView(brokers []string, topic Table, codec Codec, options ...ViewOption) (*View, error) {
	ours := []ViewOption{
		WithViewTopicManagerBuilder(DefaultTopicManagerBuilder), WithViewConsumerSaramaBuilder(DefaultSaramaConsumerBuilder),
	}
	return theirs.NewView(brokers, topic, codec, append(ours, options...)...)
}

// ProducerBuilderWithConfig is Goka's.
func ProducerBuilderWithConfig(config *sarama.Config) ProducerBuilder {
	return theirs.ProducerBuilderWithConfig(config)
}

// ResetSuffixes is Goka's.
func ResetSuffixes() {
	theirs.ResetSuffixes()
}

// SaramaConsumerBuilderWithConfig is Goka's, and reads what is committed alone, whatever the configuration says.
func SaramaConsumerBuilderWithConfig(config *sarama.Config) SaramaConsumerBuilder {
	return func(brokers []string, clientID string) (sarama.Consumer, error) {
		own := *config
		own.ClientID, own.Consumer.IsolationLevel = clientID, sarama.ReadCommitted
		return sarama.NewConsumer(brokers, &own)
	}
}

// SetLoopSuffix is Goka's.
func SetLoopSuffix(suffix string) {
	theirs.SetLoopSuffix(suffix)
}

// SetSaramaLogger is Goka's.
func SetSaramaLogger(logger Logger) {
	theirs.SetSaramaLogger(logger)
}

// SetTableSuffix is Goka's.
func SetTableSuffix(suffix string) {
	theirs.SetTableSuffix(suffix)
}

// StringsToStreams is Goka's.
func StringsToStreams(strings ...string) Streams {
	return theirs.StringsToStreams(strings...)
}

// TopicManagerBuilderWithConfig is Goka's; the newest offset of a partition is the one after the last committed record.
func TopicManagerBuilderWithConfig(config *sarama.Config, tmConfig *TopicManagerConfig) TopicManagerBuilder {
	return withVisibleEnds(theirs.TopicManagerBuilderWithConfig(config, tmConfig), func() *sarama.Config { return config })
}

// TopicManagerBuilderWithTopicManagerConfig is Goka's; the newest offset of a partition is the one after the last committed record.
func TopicManagerBuilderWithTopicManagerConfig(tmConfig *TopicManagerConfig) TopicManagerBuilder {
	return withVisibleEnds(theirs.TopicManagerBuilderWithTopicManagerConfig(tmConfig), globalConfig)
}

// WithCtxEmitHeaders is Goka's.
func WithCtxEmitHeaders(headers Headers) ContextOption {
	return theirs.WithCtxEmitHeaders(headers)
}

// WithEmitterClientID is Goka's.
func WithEmitterClientID(clientID string) EmitterOption {
	return theirs.WithEmitterClientID(clientID)
}

// WithEmitterDefaultHeaders is Goka's.
func WithEmitterDefaultHeaders(headers Headers) EmitterOption {
	return theirs.WithEmitterDefaultHeaders(headers)
}

// WithEmitterHasher is Goka's.
func WithEmitterHasher(hasher func() hash.Hash32) EmitterOption {
	return theirs.WithEmitterHasher(hasher)
}

// WithEmitterLogger is Goka's.
func WithEmitterLogger(l Logger) EmitterOption {
	return theirs.WithEmitterLogger(l)
}

// WithEmitterProducerBuilder is Goka's.
func WithEmitterProducerBuilder(pb ProducerBuilder) EmitterOption {
	return theirs.WithEmitterProducerBuilder(pb)
}

// WithEmitterTester is Goka's.
func WithEmitterTester(t Tester) EmitterOption {
	return theirs.WithEmitterTester(t)
}

// WithEmitterTopicManagerBuilder is Goka's.
func WithEmitterTopicManagerBuilder(tmb TopicManagerBuilder) EmitterOption {
	return theirs.WithEmitterTopicManagerBuilder(tmb)
}

// WithViewAutoReconnect is Goka's.
func WithViewAutoReconnect() ViewOption {
	return theirs.WithViewAutoReconnect()
}

// WithViewBackoffBuilder is Goka's.
func WithViewBackoffBuilder(bb BackoffBuilder) ViewOption {
	return theirs.WithViewBackoffBuilder(bb)
}

// WithViewBackoffResetTimeout is Goka's.
func WithViewBackoffResetTimeout(duration time.Duration) ViewOption {
	return theirs.WithViewBackoffResetTimeout(duration)
}

// WithViewCallback is Goka's.
func WithViewCallback(cb UpdateCallback) ViewOption {
	return theirs.WithViewCallback(cb)
}

// WithViewClientID is Goka's.
func WithViewClientID(clientID string) ViewOption {
	return theirs.WithViewClientID(clientID)
}

// WithViewConsumerSaramaBuilder is Goka's.
func WithViewConsumerSaramaBuilder(cgb SaramaConsumerBuilder) ViewOption {
	return theirs.WithViewConsumerSaramaBuilder(cgb)
}

// WithViewHasher is Goka's.
func WithViewHasher(hasher func() hash.Hash32) ViewOption {
	return theirs.WithViewHasher(hasher)
}

// WithViewLogger is Goka's.
func WithViewLogger(l Logger) ViewOption {
	return theirs.WithViewLogger(l)
}

// WithViewRestartable is Goka's.
func WithViewRestartable() ViewOption {
	return theirs.WithViewRestartable()
}

// WithViewStorageBuilder is Goka's.
func WithViewStorageBuilder(sb storage.Builder) ViewOption {
	return theirs.WithViewStorageBuilder(sb)
}

// WithViewTester is Goka's.
func WithViewTester(t Tester) ViewOption {
	return theirs.WithViewTester(t)
}

// WithViewTopicManagerBuilder is Goka's.
func WithViewTopicManagerBuilder(tmb TopicManagerBuilder) ViewOption {
	return theirs.WithViewTopicManagerBuilder(tmb)
}

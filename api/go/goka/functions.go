package goka

import (
	"github.com/IBM/sarama"
	theirs "github.com/lovoo/goka"
)

// DefaultSaramaConsumerBuilder is like Goka's, but reads only committed records, because tables are written in
// transactions.
func DefaultSaramaConsumerBuilder(brokers []string, clientID string) (sarama.Consumer, error) {
	return SaramaConsumerBuilderWithConfig(globalConfig())(brokers, clientID)
}

// DefaultTopicManagerBuilder is like Goka's, but the newest offset of a partition is the offset after its last
// committed record.
func DefaultTopicManagerBuilder(brokers []string) (TopicManager, error) {
	return withVisibleEnds(theirs.DefaultTopicManagerBuilder, globalConfig)(brokers)
}

// NewTopicManager is like Goka's, but the newest offset of a partition is the offset after its last committed record.
func NewTopicManager(brokers []string, saramaConfig *sarama.Config, topicManagerConfig *TopicManagerConfig) (TopicManager, error) {
	return TopicManagerBuilderWithConfig(saramaConfig, topicManagerConfig)(brokers)
}

// NewView is like Goka's, but reads only committed records. It takes the last committed record as the end of a table.
func NewView(brokers []string, topic Table, codec Codec, options ...ViewOption) (*View, error) {
	ours := []ViewOption{
		WithViewTopicManagerBuilder(DefaultTopicManagerBuilder), WithViewConsumerSaramaBuilder(DefaultSaramaConsumerBuilder),
	}
	return theirs.NewView(brokers, topic, codec, append(ours, options...)...)
}

// SaramaConsumerBuilderWithConfig is like Goka's, but reads only committed records, independent of the configuration.
func SaramaConsumerBuilderWithConfig(config *sarama.Config) SaramaConsumerBuilder {
	return func(brokers []string, clientID string) (sarama.Consumer, error) {
		own := *config
		own.ClientID, own.Consumer.IsolationLevel = clientID, sarama.ReadCommitted
		return sarama.NewConsumer(brokers, &own)
	}
}

// TopicManagerBuilderWithConfig is like Goka's. But in its topic managers the newest offset of a partition is the
// offset after its last committed record.
func TopicManagerBuilderWithConfig(config *sarama.Config, tmConfig *TopicManagerConfig) TopicManagerBuilder {
	return withVisibleEnds(theirs.TopicManagerBuilderWithConfig(config, tmConfig), func() *sarama.Config { return config })
}

// TopicManagerBuilderWithTopicManagerConfig is like Goka's. But in its topic managers the newest offset of a partition
// is the offset after its last committed record.
func TopicManagerBuilderWithTopicManagerConfig(tmConfig *TopicManagerConfig) TopicManagerBuilder {
	return withVisibleEnds(theirs.TopicManagerBuilderWithTopicManagerConfig(tmConfig), globalConfig)
}

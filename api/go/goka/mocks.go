package goka

import (
	"github.com/IBM/sarama"
	"go.uber.org/mock/gomock"
	"testing"

	theirs "github.com/lovoo/goka"
)

// The types are Goka's.
type (
	// MockAutoConsumer is Goka's.
	MockAutoConsumer = theirs.MockAutoConsumer
	// MockAutoPartitionConsumer is Goka's.
	MockAutoPartitionConsumer = theirs.MockAutoPartitionConsumer
	// MockBroker is Goka's.
	MockBroker = theirs.MockBroker
	// MockBrokerMockRecorder is Goka's.
	MockBrokerMockRecorder = theirs.MockBrokerMockRecorder
	// MockClient is Goka's.
	MockClient = theirs.MockClient
	// MockClientMockRecorder is Goka's.
	MockClientMockRecorder = theirs.MockClientMockRecorder
	// MockClusterAdmin is Goka's.
	MockClusterAdmin = theirs.MockClusterAdmin
	// MockClusterAdminMockRecorder is Goka's.
	MockClusterAdminMockRecorder = theirs.MockClusterAdminMockRecorder
	// MockConsumerGroup is Goka's.
	MockConsumerGroup = theirs.MockConsumerGroup
	// MockConsumerGroupClaim is Goka's.
	MockConsumerGroupClaim = theirs.MockConsumerGroupClaim
	// MockConsumerGroupSession is Goka's.
	MockConsumerGroupSession = theirs.MockConsumerGroupSession
	// MockProducer is Goka's.
	MockProducer = theirs.MockProducer
	// MockProducerMockRecorder is Goka's.
	MockProducerMockRecorder = theirs.MockProducerMockRecorder
	// MockStorage is Goka's.
	MockStorage = theirs.MockStorage
	// MockStorageMockRecorder is Goka's.
	MockStorageMockRecorder = theirs.MockStorageMockRecorder
	// MockTopicManager is Goka's.
	MockTopicManager = theirs.MockTopicManager
	// MockTopicManagerMockRecorder is Goka's.
	MockTopicManagerMockRecorder = theirs.MockTopicManagerMockRecorder
)

// NewMockAutoConsumer is Goka's.
func NewMockAutoConsumer(t *testing.T, config *sarama.Config) *MockAutoConsumer {
	return theirs.NewMockAutoConsumer(t, config)
}

// NewMockBroker is Goka's.
func NewMockBroker(ctrl *gomock.Controller) *MockBroker {
	return theirs.NewMockBroker(ctrl)
}

// NewMockClient is Goka's.
func NewMockClient(ctrl *gomock.Controller) *MockClient {
	return theirs.NewMockClient(ctrl)
}

// NewMockClusterAdmin is Goka's.
func NewMockClusterAdmin(ctrl *gomock.Controller) *MockClusterAdmin {
	return theirs.NewMockClusterAdmin(ctrl)
}

// NewMockConsumerGroup is Goka's.
func NewMockConsumerGroup(t *testing.T) *MockConsumerGroup {
	return theirs.NewMockConsumerGroup(t)
}

// NewMockConsumerGroupClaim is Goka's.
func NewMockConsumerGroupClaim(topic string, partition int32) *MockConsumerGroupClaim {
	return theirs.NewMockConsumerGroupClaim(topic, partition)
}

// NewMockController is Goka's.
func NewMockController(t gomock.TestReporter) *gomock.Controller {
	return theirs.NewMockController(t)
}

// NewMockProducer is Goka's.
func NewMockProducer(ctrl *gomock.Controller) *MockProducer {
	return theirs.NewMockProducer(ctrl)
}

// NewMockStorage is Goka's.
func NewMockStorage(ctrl *gomock.Controller) *MockStorage {
	return theirs.NewMockStorage(ctrl)
}

// NewMockTopicManager is Goka's.
func NewMockTopicManager(ctrl *gomock.Controller) *MockTopicManager {
	return theirs.NewMockTopicManager(ctrl)
}

package goka

import theirs "github.com/lovoo/goka"

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

// The functions are Goka's, as [github.com/lovoo/goka] describes them.
var (
	NewMockAutoConsumer       = theirs.NewMockAutoConsumer
	NewMockBroker             = theirs.NewMockBroker
	NewMockClient             = theirs.NewMockClient
	NewMockClusterAdmin       = theirs.NewMockClusterAdmin
	NewMockConsumerGroup      = theirs.NewMockConsumerGroup
	NewMockConsumerGroupClaim = theirs.NewMockConsumerGroupClaim
	NewMockController         = theirs.NewMockController
	NewMockProducer           = theirs.NewMockProducer
	NewMockStorage            = theirs.NewMockStorage
	NewMockTopicManager       = theirs.NewMockTopicManager
)

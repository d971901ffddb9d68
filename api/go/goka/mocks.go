package goka

import theirs "github.com/lovoo/goka"

// These types are aliases of Goka's types.
type (
	// MockAutoConsumer is an alias of Goka's type.
	MockAutoConsumer = theirs.MockAutoConsumer
	// MockAutoPartitionConsumer is an alias of Goka's type.
	MockAutoPartitionConsumer = theirs.MockAutoPartitionConsumer
	// MockBroker is an alias of Goka's type.
	MockBroker = theirs.MockBroker
	// MockBrokerMockRecorder is an alias of Goka's type.
	MockBrokerMockRecorder = theirs.MockBrokerMockRecorder
	// MockClient is an alias of Goka's type.
	MockClient = theirs.MockClient
	// MockClientMockRecorder is an alias of Goka's type.
	MockClientMockRecorder = theirs.MockClientMockRecorder
	// MockClusterAdmin is an alias of Goka's type.
	MockClusterAdmin = theirs.MockClusterAdmin
	// MockClusterAdminMockRecorder is an alias of Goka's type.
	MockClusterAdminMockRecorder = theirs.MockClusterAdminMockRecorder
	// MockConsumerGroup is an alias of Goka's type.
	MockConsumerGroup = theirs.MockConsumerGroup
	// MockConsumerGroupClaim is an alias of Goka's type.
	MockConsumerGroupClaim = theirs.MockConsumerGroupClaim
	// MockConsumerGroupSession is an alias of Goka's type.
	MockConsumerGroupSession = theirs.MockConsumerGroupSession
	// MockProducer is an alias of Goka's type.
	MockProducer = theirs.MockProducer
	// MockProducerMockRecorder is an alias of Goka's type.
	MockProducerMockRecorder = theirs.MockProducerMockRecorder
	// MockStorage is an alias of Goka's type.
	MockStorage = theirs.MockStorage
	// MockStorageMockRecorder is an alias of Goka's type.
	MockStorageMockRecorder = theirs.MockStorageMockRecorder
	// MockTopicManager is an alias of Goka's type.
	MockTopicManager = theirs.MockTopicManager
	// MockTopicManagerMockRecorder is an alias of Goka's type.
	MockTopicManagerMockRecorder = theirs.MockTopicManagerMockRecorder
)

// These are Goka's functions. See [github.com/lovoo/goka].
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

package goka

import theirs "github.com/lovoo/goka"

// These types are aliases of Goka's types.
type (
	MockAutoConsumer             = theirs.MockAutoConsumer
	MockAutoPartitionConsumer    = theirs.MockAutoPartitionConsumer
	MockBroker                   = theirs.MockBroker
	MockBrokerMockRecorder       = theirs.MockBrokerMockRecorder
	MockClient                   = theirs.MockClient
	MockClientMockRecorder       = theirs.MockClientMockRecorder
	MockClusterAdmin             = theirs.MockClusterAdmin
	MockClusterAdminMockRecorder = theirs.MockClusterAdminMockRecorder
	MockConsumerGroup            = theirs.MockConsumerGroup
	MockConsumerGroupClaim       = theirs.MockConsumerGroupClaim
	MockConsumerGroupSession     = theirs.MockConsumerGroupSession
	MockProducer                 = theirs.MockProducer
	MockProducerMockRecorder     = theirs.MockProducerMockRecorder
	MockStorage                  = theirs.MockStorage
	MockStorageMockRecorder      = theirs.MockStorageMockRecorder
	MockTopicManager             = theirs.MockTopicManager
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

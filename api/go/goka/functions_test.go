package goka

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// TestConsumersOfTheDefaultBuilderReadWhatIsCommittedAlone checks the isolation level in the requests that a mock
// broker of sarama gets.
func TestConsumersOfTheDefaultBuilderReadWhatIsCommittedAlone(t *testing.T) {
	broker := sarama.NewMockBroker(t, 1)
	defer broker.Close()
	broker.SetHandlerByMap(map[string]sarama.MockResponse{
		"ApiVersionsRequest": sarama.NewMockApiVersionsResponse(t),
		"MetadataRequest": sarama.NewMockMetadataResponse(t).SetBroker(broker.Addr(), broker.BrokerID()).
			SetLeader("table", 0, broker.BrokerID()),
		"OffsetRequest": sarama.NewMockOffsetResponse(t).SetOffset("table", 0, sarama.OffsetOldest, 0).
			SetOffset("table", 0, sarama.OffsetNewest, 1),
		"FetchRequest": sarama.NewMockFetchResponse(t, 1).SetMessage("table", 0, 0, sarama.StringEncoder("1")),
	})
	consumer, err := DefaultSaramaConsumerBuilder([]string{broker.Addr()}, "reader")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = consumer.Close() }()
	partition, err := consumer.ConsumePartition("table", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = partition.Close() }()
	select {
	case <-partition.Messages():
	case err := <-partition.Errors():
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("no record comes")
	}
	fetches := 0
	for _, asked := range broker.History() {
		if fetch, is := asked.Request.(*sarama.FetchRequest); is {
			fetches++
			if fetch.Isolation != sarama.ReadCommitted {
				t.Errorf("isolation level %d", fetch.Isolation)
			}
		}
	}
	if fetches == 0 {
		t.Error("nothing was fetched")
	}
}

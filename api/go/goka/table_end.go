package goka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
)

// These constants limit the search for the last committed record of a partition. The search first fetches the last
// firstWindow offsets. Each further step fetches windowTimes times as many offsets as the step before.
const (
	fetchBytes  = 1 << 20
	fetchWaitMs = 500
	firstWindow = 64
	windowTimes = 16
)

// visibleEnds is a topic manager that returns, as the newest offset, the offset after the last committed record.
// Kafka's own newest offset also counts the markers at the ends of transactions. Readers never get markers, so Goka's
// tables would wait forever.
type visibleEnds struct {
	TopicManager
	brokers []string
	config  *sarama.Config
}

// withVisibleEnds returns a builder that wraps the topic managers of another builder in visibleEnds.
func withVisibleEnds(builder TopicManagerBuilder, config func() *sarama.Config) TopicManagerBuilder {
	return func(brokers []string) (TopicManager, error) {
		manager, err := builder(brokers)
		if err != nil {
			return nil, err
		}
		return &visibleEnds{manager, brokers, config()}, nil
	}
}

// GetOffset returns the offset after the last committed record if time is sarama.OffsetNewest, and Kafka's offset for
// any other value of time.
func (m *visibleEnds) GetOffset(topic string, partition int32, time int64) (int64, error) {
	if time != sarama.OffsetNewest {
		return m.TopicManager.GetOffset(topic, partition, time)
	}
	client, err := sarama.NewClient(m.brokers, m.config)
	if err != nil {
		return 0, fmt.Errorf("error creating the kafka client: %w", err)
	}
	end, err := visibleEnd(client, topic, partition)
	if err != nil {
		err = fmt.Errorf("error finding the last record of topic %s, partition %d: %w", topic, partition, err)
	}
	return end, errors.Join(err, client.Close())
}

// visibleEnd returns the offset after the last committed record, or the oldest offset if there is no such record.
func visibleEnd(client sarama.Client, topic string, partition int32) (int64, error) {
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return 0, err
	}
	newest, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return 0, err
	}
	for window := int64(firstWindow); ; window *= windowTimes {
		begin := max(oldest, newest-window)
		end, err := visibleEndAfter(client, topic, partition, begin, newest)
		switch {
		case err != nil:
			return 0, err
		case end > begin:
			return end, nil
		case begin == oldest:
			return oldest, nil
		}
	}
}

// visibleEndAfter returns the offset after the last committed record at or after begin, or begin if there is no such
// record.
func visibleEndAfter(client sarama.Client, topic string, partition int32, begin, newest int64) (int64, error) {
	leader, err := client.Leader(topic, partition)
	if err != nil {
		return 0, err
	}
	end := begin
	for offset := begin; offset < newest; {
		request := &sarama.FetchRequest{
			Version: 4, MaxWaitTime: fetchWaitMs, MinBytes: 1, MaxBytes: fetchBytes, Isolation: sarama.ReadCommitted,
		}
		request.AddBlock(topic, partition, offset, fetchBytes, -1)
		response, err := leader.Fetch(request)
		if err != nil {
			return 0, err
		}
		block := response.GetBlock(topic, partition)
		if block == nil {
			return 0, sarama.ErrIncompleteResponse
		}
		if block.Err != sarama.ErrNoError {
			return 0, block.Err
		}
		found, next := endOfVisible(block)
		if next <= offset {
			break // the next records belong to an open transaction
		}
		end, offset = max(end, found), next
	}
	return end, nil
}

// endOfVisible returns two offsets for the records of one fetch. end is the offset after the last committed record, or
// 0 if there is none. next is the offset for the next fetch, or 0 if nothing was fetched.
func endOfVisible(block *sarama.FetchResponseBlock) (end, next int64) {
	begun := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(begun, func(a, b *sarama.AbortedTransaction) int { return int(a.FirstOffset - b.FirstOffset) })
	aborting := map[int64]bool{}
	for _, records := range block.RecordsSet {
		if set := records.MsgSet; set != nil {
			for _, message := range set.Messages {
				end, next = message.Offset+1, message.Offset+1
			}
			continue
		}
		batch := records.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		next = batch.LastOffset() + 1
		for len(begun) > 0 && begun[0].FirstOffset <= batch.LastOffset() {
			aborting[begun[0].ProducerID] = true
			begun = begun[1:]
		}
		switch {
		case batch.Control:
			delete(aborting, batch.ProducerID)
		case batch.IsTransactional && aborting[batch.ProducerID]:
		case len(batch.Records) > 0:
			end = batch.FirstOffset + batch.Records[len(batch.Records)-1].OffsetDelta + 1
		}
	}
	return end, next
}

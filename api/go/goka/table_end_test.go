package goka

import (
	"math/rand"
	"testing"

	"github.com/IBM/sarama"
)

// TestEndOfVisibleOfDrawnLogs draws logs with interleaved transactions, plain records and gaps of compaction, and cuts
// them at a drawn batch as a fetch does. The reference reads the records one by one.
func TestEndOfVisibleOfDrawnLogs(t *testing.T) {
	for seed := int64(0); seed < 2000; seed++ {
		checkDrawnLog(t, seed)
	}
}

func checkDrawnLog(t *testing.T, seed int64) {
	draw := rand.New(rand.NewSource(seed))
	type transaction struct {
		first   int64
		aborted bool
	}
	offset, open := int64(draw.Intn(50)), map[int64]*transaction{}
	var batches []*sarama.RecordBatch
	var aborts []*sarama.AbortedTransaction
	visible := map[int]int64{} // by batch: the end of what a reader gets of it
	for range 1 + draw.Intn(20) {
		producer := int64(draw.Intn(3))
		running := open[producer]
		batch := &sarama.RecordBatch{FirstOffset: offset, ProducerID: producer}
		switch {
		case running != nil && draw.Intn(3) == 0:
			batch.Control, batch.IsTransactional = true, true
			delete(open, producer)
			offset++
		default:
			count := int64(1 + draw.Intn(3))
			batch.LastOffsetDelta = int32(count - 1)
			for delta := range count {
				if draw.Intn(4) > 0 { // else compaction has removed it
					batch.Records = append(batch.Records, &sarama.Record{OffsetDelta: delta})
				}
			}
			batch.IsTransactional = running != nil || draw.Intn(2) == 0
			if batch.IsTransactional && running == nil {
				running = &transaction{offset, draw.Intn(2) == 0}
				open[producer] = running
				if running.aborted {
					aborts = append(aborts, &sarama.AbortedTransaction{ProducerID: producer, FirstOffset: offset})
				}
			}
			if kept := len(batch.Records); kept > 0 && !(batch.IsTransactional && running.aborted) {
				visible[len(batches)] = offset + batch.Records[kept-1].OffsetDelta + 1
			}
			offset += count
		}
		batches = append(batches, batch)
	}
	first := draw.Intn(len(batches))
	var end, next int64
	block := &sarama.FetchResponseBlock{}
	for number, batch := range batches[first:] {
		next = batch.LastOffset() + 1
		end = max(end, visible[first+number])
		block.RecordsSet = append(block.RecordsSet, &sarama.Records{RecordBatch: batch})
	}
	for _, aborted := range aborts { // Kafka names those that end at or after the first offset that was fetched
		if last := lastOf(batches, aborted); last >= batches[first].FirstOffset {
			block.AbortedTransactions = append(block.AbortedTransactions, aborted)
		}
	}
	draw.Shuffle(len(block.AbortedTransactions), func(i, j int) {
		all := block.AbortedTransactions
		all[i], all[j] = all[j], all[i]
	})
	if foundEnd, foundNext := endOfVisible(block); foundEnd != end || foundNext != next {
		t.Fatalf("seed %d: end %d, next %d instead of %d, %d", seed, foundEnd, foundNext, end, next)
	}
}

// lastOf returns the offset of the marker that ends a transaction, or of the log's last record if the transaction is
// open.
func lastOf(batches []*sarama.RecordBatch, of *sarama.AbortedTransaction) int64 {
	for _, batch := range batches {
		if batch.Control && batch.ProducerID == of.ProducerID && batch.FirstOffset > of.FirstOffset {
			return batch.FirstOffset
		}
	}
	return batches[len(batches)-1].LastOffset()
}

package goka

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/IBM/sarama"

	"wallarooapi/stream"
)

// brokersLimit is the default of message.max.bytes, the largest record in bytes that a broker accepts. batchBytes is
// the overhead of a record batch, which is included in this limit.
const brokersLimit, batchBytes = 1_048_588, 61

// saramasLimit is the default of Producer.MaxMessageBytes in sarama's configuration.
var saramasLimit = sarama.NewConfig().Producer.MaxMessageBytes

// limitOfRecords returns the maximum number of bytes of a record that a callback writes, and whether the program has
// set this limit as Producer.MaxMessageBytes.
func limitOfRecords() (limit int, isSet bool) {
	if replacement == nil || replacement.Producer.MaxMessageBytes == saramasLimit {
		return brokersLimit, false
	}
	return replacement.Producer.MaxMessageBytes, true
}

// limited adds the limit for the size of records to the options of a sink, if the program has set it.
func limited(options map[string]string) map[string]string {
	if limit, isSet := limitOfRecords(); isSet {
		options["kafka.max.request.size"] = strconv.Itoa(limit)
	}
	return options
}

// checkSize returns an error for a record that is too large for Kafka.
func checkSize(record stream.KafkaRecord) error {
	limit, _ := limitOfRecords()
	size := sizeOf(record)
	if size <= limit {
		return nil
	}
	return fmt.Errorf("the record of key %.80s for topic %s has %d bytes; at most %d are possible; split its value, or raise "+
		"Producer.MaxMessageBytes by goka.ReplaceGlobalConfig and max.message.bytes of the topic", record.Key, record.Topic, size, limit)
}

// sizeOf returns the size of a record in bytes as brokers count it: uncompressed and alone in its batch.
func sizeOf(record stream.KafkaRecord) int {
	size := 3 + pieceBytes(record.Key) + pieceBytes(record.Value) + varintBytes(len(record.Headers))
	for _, header := range record.Headers {
		size += varintBytes(len(header.Key)) + len(header.Key) + pieceBytes(header.Value)
	}
	return batchBytes + varintBytes(size) + size
}

// pieceBytes returns the number of bytes that data takes in a record: its length, then data itself. Nil data is the
// length -1 alone.
func pieceBytes(data []byte) int {
	if data == nil {
		return 1
	}
	return varintBytes(len(data)) + len(data)
}

// varintBytes returns the number of bytes of a number in Kafka's format for records.
func varintBytes(number int) int { return len(binary.AppendVarint(nil, int64(number))) }

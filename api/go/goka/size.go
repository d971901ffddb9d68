package goka

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"

	"github.com/IBM/sarama"

	"wallarooapi/stream"
)

// brokersLimit is the default of message.max.bytes, the largest record in bytes that a broker accepts. batchBytes is
// the overhead of a record batch, which is included in this limit.
const brokersLimit, batchBytes = 1_048_588, 61

// saramasLimit is the default of Producer.MaxMessageBytes in sarama's configuration.
var saramasLimit = sarama.NewConfig().Producer.MaxMessageBytes

// limitOf returns the maximum number of bytes of a record that a callback writes, and whether a configuration of the
// program has set this limit as Producer.MaxMessageBytes.
func limitOf(config *sarama.Config) (limit int, isSet bool) {
	if config.Producer.MaxMessageBytes == saramasLimit {
		return brokersLimit, false
	}
	return config.Producer.MaxMessageBytes, true
}

// limited returns a copy of the options of sinks, with the limit for the size of records if the program has set it.
func limited(options map[string]string, config *sarama.Config) map[string]string {
	with := maps.Clone(options)
	if limit, isSet := limitOf(config); isSet {
		with["kafka.max.request.size"] = strconv.Itoa(limit)
	}
	return with
}

// checkSize returns an error for a record that is too large for Kafka.
func checkSize(record stream.KafkaRecord, limit int) error {
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

package stream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/declaration"
	pb "wallarooapi/internal/recordpb"
	"wallarooapi/internal/topology"
)

const mostShown = 200 // bytes

// KafkaRecord is a whole Kafka record, the message type of KafkaRecordSource and the output type of KafkaRecordSink.
// Between processes and in states it is written as the protobuf message Record of record.proto.
type KafkaRecord struct {
	// Topic is the topic from which the record was read. Sinks ignore it.
	Topic string
	// Key is nil if the record has no key. An empty key is not nil.
	Key []byte
	// Value is nil for a tombstone.
	Value []byte
	// Headers are in the order of the record. Names may repeat.
	Headers []KafkaHeader
	// Time is the record's timestamp, which may be before 1970. Kafka uses one millisecond before 1970 for a record
	// without a timestamp. In a record for a sink, this value and the zero time let Kafka set the timestamp.
	Time time.Time
	// Partition is the partition from which the record was read. In a record for a sink, nil lets Kafka's client choose
	// the partition.
	Partition *int32
	// Offset is the offset at which the record was read. Sinks ignore it.
	Offset int64
}

// KafkaHeader is one header of a KafkaRecord; Value may be nil.
type KafkaHeader struct {
	Key   string
	Value []byte
}

func init() {
	Register(Codec[KafkaRecord](functions[KafkaRecord]{KafkaRecord.MarshalBinary, readRecord}))
}

// String formats the record for people: topic, partition, offset, key, value and headers. Long values are cut.
func (r KafkaRecord) String() string {
	place := r.Topic
	if r.Partition != nil {
		place += fmt.Sprintf(" %d/%d", *r.Partition, r.Offset)
	}
	text := fmt.Sprintf("{%s key %s value %s", place, shownBytes(r.Key), shownBytes(r.Value))
	for _, header := range r.Headers {
		text += fmt.Sprintf(" %s=%s", header.Key, shownBytes(header.Value))
	}
	return text + "}"
}

func shownBytes(data []byte) string {
	if data == nil {
		return "none"
	}
	text := strconv.Quote(string(data[:min(len(data), mostShown)]))
	if len(data) > mostShown {
		text += "…"
	}
	return text
}

// MarshalBinary returns the serialized record. It returns an error if a header's name is not UTF-8.
func (r KafkaRecord) MarshalBinary() ([]byte, error) {
	record := &pb.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Partition: r.Partition, Offset: r.Offset}
	for number, header := range r.Headers {
		if !utf8.ValidString(header.Key) {
			return nil, fmt.Errorf("the record's Headers[%d] has the name %q, which is not UTF-8", number, header.Key)
		}
		record.Headers = append(record.Headers, &pb.Header{Key: header.Key, Value: header.Value})
	}
	if !r.Time.IsZero() {
		record.TimestampMs = r.Time.UnixMilli()
	}
	// The result must not be nil, because nil would be no message. A record in which nothing is set has zero bytes.
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, record)
}

// UnmarshalBinary sets the record from serialized bytes. It does not keep data.
func (r *KafkaRecord) UnmarshalBinary(data []byte) error {
	var record pb.Record
	if err := proto.Unmarshal(data, &record); err != nil {
		return fmt.Errorf("the bytes are no record of Kafka: %w", err)
	}
	*r = KafkaRecord{Topic: record.Topic, Key: record.Key, Value: record.Value, Partition: record.Partition, Offset: record.Offset}
	for _, header := range record.Headers {
		r.Headers = append(r.Headers, KafkaHeader{header.Key, header.Value})
	}
	if record.TimestampMs != 0 {
		r.Time = time.UnixMilli(record.TimestampMs)
	}
	return nil
}

func readRecord(data []byte) (record KafkaRecord, err error) {
	err = record.UnmarshalBinary(data)
	return record, err
}

// KafkaRecordSource reads a topic of Kafka. Its messages are whole records, including tombstones but not records of
// aborted transactions. A message has the key of its record, or the empty key if the record has none. A wrong
// description of the topic is reported (T207).
func KafkaRecordSource(topic Kafka) Source[KafkaRecord] {
	edge := sourceEdge(topic)
	edge.Content = topology.Record
	return Source[KafkaRecord]{declaration.Source{
		Edge: edge, Given: &recordReader{results: resultsOf[KafkaRecord]()}, Found: checkTopic("KafkaRecordSource", topic),
	}}
}

// KafkaRecordSink writes whole records to a topic of Kafka. A record with a nil value is written as a tombstone. If
// encode returns the error ErrSkip, nothing is written. A wrong description of the topic is reported (T207).
func KafkaRecordSink[T any](topic Kafka, encode func(message T) (KafkaRecord, error)) Sink[T] {
	edge := sinkEdge(topic)
	edge.Content = topology.Record
	declared := declaration.Sink{Edge: edge, Given: &recordWriter[T]{encode}, Found: checkTopic("KafkaRecordSink", topic)}
	if encode == nil {
		declared.Found = append(declared.Found, wrongParameter("KafkaRecordSink", "encode", "nil", "a function")...)
	} else {
		declared.Encode = declaration.Values(&recordWriter[T]{encode})
	}
	return Sink[T]{declared}
}

// recordReader is the decoder of whole records.
type recordReader struct{ results results[KafkaRecord] }

func (*recordReader) GoSymbol() string { return "stream.KafkaRecord" }

func (r *recordReader) Decode(payload []byte) any {
	return r.results.settle(readRecord(payload)).One
}

// recordWriter is the encoder of whole records.
type recordWriter[T any] struct{ function func(T) (KafkaRecord, error) }

func (w *recordWriter[T]) GoSymbol() string { return symbolOf(w.function) }

func (w *recordWriter[T]) Encode(data any) []byte {
	record, err := w.function(data.(T))
	if err == nil {
		var encoded []byte
		if encoded, err = record.MarshalBinary(); err == nil {
			return encoded
		}
	}
	refuse(err)
	return nil
}

// sourceEdge returns the topology's description of a source's topic.
func sourceEdge(topic Kafka) *topology.Kafka {
	topic.Start = cmp.Or(topic.Start, "start")
	return sinkEdge(topic)
}

// sinkEdge returns the topology's description of a sink's topic. The description also has the fields that are only for
// sources, so that a run can refuse them.
func sinkEdge(topic Kafka) *topology.Kafka {
	edge := &topology.Kafka{
		Topic: topic.Topic, Brokers: slices.Clone(topic.Brokers), Start: topic.Start, Options: maps.Clone(topic.Options),
		ExactlyOnce: topic.ExactlyOnce, Table: topic.Table, Create: creation(topic),
	}
	for _, number := range topic.Partitions {
		edge.Partitions = append(edge.Partitions, topology.Partition{Number: number})
	}
	return edge
}

// creation returns the topology's description of the topic to create, or nil if the topic must exist.
func creation(topic Kafka) *topology.Creation {
	if topic.Create == nil {
		return nil
	}
	made := topology.Creation(*topic.Create)
	made.Options = maps.Clone(made.Options)
	return &made
}

package wallarootest

import (
	"wallarooapi/internal/memory"
	"wallarooapi/internal/topology"
	"wallarooapi/stream"
)

// hasRecords reports whether the messages of a source or sink are whole Kafka records.
func hasRecords(edge topology.Edge) bool {
	kafka, is := edge.(*topology.Kafka)
	return is && kafka.Content == topology.Record
}

// recordOf converts a message for a source of whole records into a record. If the type of the message does not permit
// this, the second result is false.
func recordOf(message any) (record stream.KafkaRecord, is bool) {
	switch m := message.(type) {
	case stream.KafkaRecord:
		return m, true
	case stream.Record:
		record = stream.KafkaRecord{Value: m.Value, Time: m.Time, Partition: m.Partition}
		if len(m.Key) > 0 {
			record.Key = m.Key
		}
		for _, header := range m.Headers {
			record.Headers = append(record.Headers, stream.KafkaHeader{Key: header.Name, Value: header.Value})
		}
		return record, true
	}
	payload, is := payloadOf(message)
	return stream.KafkaRecord{Value: payload}, is
}

// addRecord adds a record to the current frame. Topic, partition, offset and time are set as in Kafka, unless the test
// has set them.
func (w *writer) addRecord(record stream.KafkaRecord) bool {
	w.app.t.Helper()
	if record.Topic == "" {
		record.Topic = w.source.Edge.(*topology.Kafka).Topic
	}
	if record.Partition == nil {
		record.Partition = new(int32)
	}
	if record.Offset == 0 {
		record.Offset = w.app.offsets[w.source.Path]
	}
	w.app.offsets[w.source.Path] = record.Offset + 1
	if record.Time.IsZero() {
		record.Time = w.app.now
	}
	value, err := record.MarshalBinary()
	if err != nil {
		w.app.t.Fatalf("wallarootest: source %q: %v", w.source.Name, err)
		return false
	}
	w.begin(false)
	w.arrivals = append(w.arrivals, memory.Arrival{Value: value, Key: record.Key, TimestampMs: record.Time.UnixMilli()})
	return true
}

// KafkaRecords returns the records that a stream.KafkaRecordSink has got since the beginning of the test. The test
// fails if the sink is of another kind.
func (a *App) KafkaRecords(sink string) []stream.KafkaRecord {
	a.t.Helper()
	records := []stream.KafkaRecord{}
	found := a.sink(sink)
	if found == nil {
		return nil
	}
	if !hasRecords(found.Edge) {
		a.t.Fatalf("wallarootest: sink %q has no whole records: it is no stream.KafkaRecordSink; use Records", sink)
		return nil
	}
	for _, each := range a.of(sink) {
		var record stream.KafkaRecord
		if err := record.UnmarshalBinary(each.record.Value); err != nil {
			a.t.Fatalf("wallarootest: sink %q: %v", sink, err)
			return nil
		}
		records = append(records, record)
	}
	return records
}

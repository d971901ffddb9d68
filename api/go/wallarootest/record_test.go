package wallarootest_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// drawnRecord returns a record with drawn parts; key, values and headers may be missing.
func drawnRecord(draw *rand.Rand) stream.KafkaRecord {
	bytes := func() []byte {
		if draw.IntN(4) == 0 {
			return nil
		}
		made := make([]byte, draw.IntN(4))
		for i := range made {
			made[i] = byte(draw.Uint32())
		}
		return made
	}
	record := stream.KafkaRecord{Topic: "other", Key: bytes(), Value: bytes(), Offset: 1 + draw.Int64N(1<<40)}
	for range draw.IntN(3) {
		record.Headers = append(record.Headers, stream.KafkaHeader{Key: []string{"", "a", "é"}[draw.IntN(3)], Value: bytes()})
	}
	record.Time = time.UnixMilli(1 + draw.Int64N(1<<40))
	partition := draw.Int32N(9)
	record.Partition = &partition
	return record
}

// whole declares an application that emits, for each record, the previous record of its key.
func whole() *stream.Application {
	app := stream.New("Whole")
	topic := stream.Kafka{Topic: "in", Brokers: []string{"127.0.0.1:9092"}, Table: true, Create: &stream.TopicCreation{Partitions: 2}}
	records := stream.From(app, "in", stream.KafkaRecordSource(topic))
	before := func(_ context.Context, record stream.KafkaRecord, last *stream.KafkaRecord) (stream.KafkaRecord, error) {
		record, *last = *last, record
		return record, nil
	}
	stream.MapState(records, "before", before).To(stream.KafkaRecordSink(
		stream.Kafka{Topic: "out", Brokers: topic.Brokers, ExactlyOnce: true, Create: &stream.TopicCreation{Like: "in"}},
		func(record stream.KafkaRecord) (stream.KafkaRecord, error) { return record, nil }))
	return app
}

func TestKafkaRecords(t *testing.T) {
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		app := wallarootest.New(t, whole(), wallarootest.Vary(seed))
		var want []stream.KafkaRecord
		last := map[string]stream.KafkaRecord{}
		for range draw.IntN(30) {
			record := drawnRecord(draw)
			app.Send("in", record)
			want = append(want, last[string(record.Key)])
			last[string(record.Key)] = record
		}
		got := app.KafkaRecords("out")
		if len(got) != len(want) {
			t.Fatalf("seed %d: got %d records, want %d", seed, len(got), len(want))
		}
		for _, each := range want {
			found := false
			for i, other := range got {
				if reflect.DeepEqual(each, other) {
					got, found = append(got[:i:i], got[i+1:]...), true
					break
				}
			}
			if !found {
				t.Fatalf("seed %d: no record %+v in %+v", seed, each, got)
			}
		}
	}
}

func TestKafkaRecordsOfPayloads(t *testing.T) {
	app := wallarootest.New(t, whole())
	app.Send("in", "one", stream.Record{Key: []byte("k"), Headers: []stream.Header{{Name: "h", Value: []byte("v")}}}, "two")
	partition := int32(0)
	want := []stream.KafkaRecord{
		{},
		{},
		{Topic: "in", Value: []byte("one"), Time: wallarootest.Start.Local(), Partition: &partition},
	}
	if got := app.KafkaRecords("out"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

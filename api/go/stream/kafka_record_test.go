package stream_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "wallarooapi/internal/recordpb"
	"wallarooapi/internal/testdata/vector"
	"wallarooapi/stream"
)

type recordCase struct {
	Name   string
	Record struct {
		Topic       string
		Key, Value  *string
		Headers     [][2]*string
		TimestampMs int64 `json:"timestamp_ms"`
		Partition   *int32
		Offset      int64
	}
	Hex string
}

// bytesOf returns the bytes of a text in hex; nil for none.
func bytesOf(t *testing.T, text *string) []byte {
	t.Helper()
	if text == nil {
		return nil
	}
	data, err := hex.DecodeString(*text)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{}, data...)
}

// run goes both ways, and reports whether the bytes fit the record.
func (c recordCase) run(t *testing.T) bool {
	t.Helper()
	given := c.Record
	want := stream.KafkaRecord{
		Topic: given.Topic, Key: bytesOf(t, given.Key), Value: bytesOf(t, given.Value), Partition: given.Partition, Offset: given.Offset,
	}
	for _, header := range given.Headers {
		want.Headers = append(want.Headers, stream.KafkaHeader{Key: *header[0], Value: bytesOf(t, header[1])})
	}
	if given.TimestampMs != 0 {
		want.Time = time.UnixMilli(given.TimestampMs)
	}
	data := bytesOf(t, &c.Hex)
	written, err := want.MarshalBinary()
	var got stream.KafkaRecord
	if fault := got.UnmarshalBinary(data); err != nil || fault != nil {
		t.Fatalf("%s: %v, %v", c.Name, err, fault)
	}
	return string(written) == string(data) && reflect.DeepEqual(got, want)
}

func TestRecordVectors(t *testing.T) {
	var file struct {
		Records []recordCase
		States  []struct {
			Name   string
			Value  *string
			Joined map[string]string
			Hex    string
		}
		Invalid []struct{ Name, Hex string }
	}
	vector.Read(t, "records.json", &file)
	for _, c := range file.Records {
		if !c.run(t) {
			t.Errorf("%s: the bytes do not fit the record", c.Name)
		}
	}
	for _, c := range file.States {
		state := &pb.GroupState{Value: bytesOf(t, c.Value), Joined: map[string][]byte{}}
		for topic, text := range c.Joined {
			state.Joined[topic] = bytesOf(t, &text)
		}
		written, err := proto.MarshalOptions{Deterministic: true}.Marshal(state)
		var got pb.GroupState
		fault := proto.Unmarshal(bytesOf(t, &c.Hex), &got)
		if err != nil || fault != nil || hex.EncodeToString(written) != c.Hex || !proto.Equal(&got, state) {
			t.Errorf("%s: %x, %v, %v", c.Name, written, err, fault)
		}
	}
	for _, c := range file.Invalid {
		var record stream.KafkaRecord
		if record.UnmarshalBinary(bytesOf(t, &c.Hex)) == nil {
			t.Errorf("%s: was read as %+v", c.Name, record)
		}
	}
	if len(file.Records) == 0 || len(file.States) == 0 || len(file.Invalid) == 0 {
		t.Error("there are no cases")
	}
}

func TestTheWrongRecordVectorsFail(t *testing.T) {
	var file struct{ Records []recordCase }
	vector.Read(t, "selftest.json", &file)
	if len(file.Records) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range file.Records {
		if c.run(t) {
			t.Errorf("%s: passes", c.Name)
		}
	}
}

func TestARecordWhoseHeaderHasNoNameInUTF8(t *testing.T) {
	_, err := stream.KafkaRecord{Headers: []stream.KafkaHeader{{Key: "via"}, {Key: "\xff"}}}.MarshalBinary()
	if err == nil || err.Error() != `the record's Headers[1] has the name "\xff", which is not UTF-8` {
		t.Error(err)
	}
}

func TestARecordIsShownWithItsPlace(t *testing.T) {
	number := int32(2)
	record := stream.KafkaRecord{Topic: "orders", Partition: &number, Offset: 7, Key: []byte("ann"), Headers: []stream.KafkaHeader{{Key: "via", Value: []byte{1}}}}
	if shown := fmt.Sprintf("%+v", record); shown != `{orders 2/7 key "ann" value none via="\x01"}` {
		t.Error(shown)
	}
	record.Value = bytes.Repeat([]byte("x"), 1<<20)
	if shown := record.String(); len(shown) > 300 || !strings.Contains(shown, "x\"…") {
		t.Error(len(shown))
	}
}

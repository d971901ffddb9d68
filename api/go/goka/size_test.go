package goka

import (
	"strings"
	"testing"

	"wallarooapi/goka/codec"
	"wallarooapi/stream"
)

// TestLargeRecords checks that a record which is too large for Kafka makes its message fail, and no other message.
func TestLargeRecords(t *testing.T) {
	graph := DefineGroup("large", Output("out", new(codec.String)), Persist(new(codec.String)),
		Input("in", new(codec.String), func(ctx Context, message any) {
			ctx.Emit("out", ctx.Key(), message)
			ctx.SetValue("small")
		}))
	e := newEngine(t, graph, []ProcessorOption{WithDeadLetters()})
	const overhead = batchBytes + 3 + 3 + 2 + 3 + 1 // of a value of a megabyte with a key of one byte
	for _, size := range []int{brokersLimit - overhead, brokersLimit - overhead + 1, 1} {
		e.app.Send("in", record("in", "k", []byte(strings.Repeat("x", size))))
	}
	var sizes []int
	for _, each := range e.app.KafkaRecords("out") {
		sizes = append(sizes, len(each.Value))
	}
	if len(sizes) != 2 || sizes[0] != brokersLimit-overhead || sizes[1] != 1 {
		t.Errorf("sizes %v", sizes)
	}
	if table := e.app.KafkaRecords("large-table"); len(table) != 2 {
		t.Errorf("the table has %d records", len(table))
	}
	letters := e.app.DeadLetters()
	const want = "the record of key k for topic out has 1048589 bytes; at most 1048588 are possible; split its value, or raise Producer.MaxMessageBytes"
	if len(letters) != 1 || !strings.Contains(letters[0].Reason, want) {
		t.Errorf("%v", letters)
	}
}

// TestSizesOfRecords checks the sizes of records as brokers count them. tests/test_goka_large.py compares with a real
// broker.
func TestSizesOfRecords(t *testing.T) {
	headers := []stream.KafkaHeader{{Key: "name", Value: []byte("value")}, {Key: "none"}}
	for want, record := range map[int]stream.KafkaRecord{
		61 + 1 + 3 + 1 + 1 + 1:           {},
		61 + 1 + 3 + 1 + 1 + 1 + 1:       {Key: []byte("k")},
		61 + 1 + 3 + 2 + 3 + 1 + 11 + 6:  {Key: []byte("k"), Value: []byte("xy"), Headers: headers},
		61 + 2 + 3 + 1 + 2 + 64 + 1:      {Value: make([]byte, 64)},
		61 + 3 + 3 + 1 + 3 + 8192 + 1:    {Value: make([]byte, 8192)},
		61 + 4 + 3 + 1 + 3 + 1048570 + 1: {Value: make([]byte, 1048570)},
	} {
		if got := sizeOf(record); got != want {
			t.Errorf("%d bytes instead of %d", got, want)
		}
	}
}

// TestLimitOfRecords checks that a limit of the program is also the limit of the sinks.
func TestLimitOfRecords(t *testing.T) {
	before := replacement
	defer func() { replacement = before }()
	config := DefaultConfig()
	ReplaceGlobalConfig(config)
	if limit, isSet := limitOf(globalConfig()); limit != brokersLimit || isSet {
		t.Errorf("%d, %v", limit, isSet)
	}
	config.Producer.MaxMessageBytes = 3_000_000
	if limit, isSet := limitOf(globalConfig()); isSet {
		t.Errorf("a configuration that changes later counts: %d", limit)
	}
	if options := limited(map[string]string{}, config); options["kafka.max.request.size"] != "3000000" {
		t.Errorf("%v", options)
	}
	if err := checkSize(stream.KafkaRecord{Topic: "t", Value: make([]byte, 2_900_000)}, config.Producer.MaxMessageBytes); err != nil {
		t.Error(err)
	}
}

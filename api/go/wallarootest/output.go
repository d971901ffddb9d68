package wallarootest

import (
	"cmp"
	"encoding/binary"
	"strings"

	"wallarooapi/internal/frame"
	"wallarooapi/internal/memory"
	"wallarooapi/stream"
)

// output is a message that a sink got, and its encoded record.
type output struct {
	message any
	record  stream.Record
}

// inOrder compares two results by the order of their source messages.
func inOrder(a, b memory.Message) int { return cmp.Compare(a.Sequence, b.Sequence) }

// publish adds the output of a micro-batch to the outputs of the sinks.
func (a *App) publish(messages []memory.Message) {
	paths := map[uint16]string{}
	for sink := range a.declared.Sinks() {
		paths[a.engine.PortOf(sink.Path)] = sink.Path
	}
	for _, each := range messages {
		if each.Port == frame.DeadLetterPort {
			continue
		}
		encoded, message := a.captured.take(each.Value)
		made := output{message, stream.Record{Value: encoded, Key: each.Key}}
		if len(each.Headers) >= 4 { // the only header of a sink's record is its partition
			partition := int32(binary.LittleEndian.Uint32(each.Headers[len(each.Headers)-4:]))
			made.record.Partition = &partition
		}
		a.outputs[paths[each.Port]] = append(a.outputs[paths[each.Port]], made)
	}
}

// of returns the output of a sink since the beginning of the test.
func (a *App) of(sink string) []output {
	a.t.Helper()
	a.flush()
	if found := a.sink(sink); found != nil {
		return a.outputs[found.Path]
	}
	return nil
}

// Lines returns the records that a sink has got since the beginning of the test, each as a text without a line break at
// its end. sink is the name, path, address or topic of the sink. In a *stream.Application, a sink without Named has the
// application's name.
func (a *App) Lines(sink string) []string {
	a.t.Helper()
	lines := []string{}
	for _, each := range a.of(sink) {
		lines = append(lines, strings.TrimSuffix(string(each.record.Value), "\n"))
	}
	return lines
}

// Records returns the records that a sink has got since the beginning of the test, in the form in which the encoder
// returned them. Value contains the bytes with their framing. Records for Kafka or Spark also have a key and a
// partition.
func (a *App) Records(sink string) []stream.Record {
	a.t.Helper()
	records := []stream.Record{}
	for _, each := range a.of(sink) {
		records = append(records, each.record)
	}
	return records
}

// Messages returns the messages that a sink has got since the beginning of the test, in the form before the encoding.
// It leaves out messages for which the encoder returned no bytes. The test fails if a message is not of type M.
func Messages[M any](a *App, sink string) []M {
	a.t.Helper()
	messages := []M{}
	for _, each := range a.of(sink) {
		message, is := each.message.(M)
		if !is {
			a.t.Fatalf("wallarootest: sink %q got a message of type %T; expected %T", sink, each.message, message)
			return nil
		}
		messages = append(messages, message)
	}
	return messages
}

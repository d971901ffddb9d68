package goka

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/IBM/sarama"

	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// joinedPrefix precedes the topic of a record of a joined table on its way to the step: no topic of Kafka has a colon.
const joinedPrefix = "table:"

// group runs the callbacks of a graph. The streams of several partitions run at once.
type group struct {
	graph      *GroupGraph
	options    *poptions
	outputs    map[string]stream.Output[stream.KafkaRecord]
	lookups    map[string]*View
	memory     map[string]*memoryTable // in their place, where the runtime has no Kafka
	count      int32                   // of partitions of the input with the most, as far as it is known
	reach      map[string]string       // settings by which the runtime reaches the brokers
	partitions map[string]int32        // of the topics that the group writes, where a hasher of the program places records
	context    func() context.Context
	abort      func(error) // ends the run of the program; nil where the runtime has started it
	failed     failures
	late       late
	calls      calls
	visits     visits
	counts     counts
}

func newGroup(graph *GroupGraph, options *poptions, running func() context.Context) (*group, error) {
	if err := graph.checkTopics(); err != nil {
		return nil, err
	}
	settings, err := reach(globalConfig(), options.kafka)
	if err != nil {
		return nil, err
	}
	g := &group{
		graph: graph, options: options, outputs: map[string]stream.Output[stream.KafkaRecord]{},
		lookups: map[string]*View{}, memory: map[string]*memoryTable{}, partitions: map[string]int32{}, context: running,
		reach: settings,
	}
	for _, topic := range graph.written() {
		g.outputs[topic] = stream.NewOutput[stream.KafkaRecord](topic)
	}
	return g, nil
}

// logNotes writes which options change nothing here.
func (g *group) logNotes() {
	for _, note := range g.options.notes {
		g.options.log.Printf("processor %s: %s", g.graph.Group(), note)
	}
}

// assign calls the rebalance callback, with all partitions of the inputs.
func (g *group) assign() {
	if g.options.rebalanceCallback == nil {
		return
	}
	all := Assignment{}
	for number := range g.count {
		all[number] = sarama.OffsetNewest
	}
	g.options.rebalanceCallback(all)
}

// errNone stands for a message that emitted all its results itself.
var errNone = stream.ErrSkip

// stateless runs a record in a group without table and joins.
func (g *group) stateless(ctx context.Context, record stream.KafkaRecord) (*stream.KafkaRecord, error) {
	return nil, g.handle(ctx, record, nil)
}

// stateful runs a record of an input, or of a joined table.
func (g *group) stateful(ctx context.Context, record stream.KafkaRecord, state *recordpb.GroupState) (*stream.KafkaRecord, error) {
	if topic, isJoined := strings.CutPrefix(record.Topic, joinedPrefix); isJoined {
		return nil, g.update(topic, record, state)
	}
	return nil, g.handle(ctx, record, state)
}

// handle decodes a record and calls the callback of its topic.
func (g *group) handle(ctx context.Context, record stream.KafkaRecord, state *recordpb.GroupState) error {
	g.counts.came(partitionOf(record), record)
	codec, callback := g.graph.codecs[record.Topic], g.graph.callbacks[record.Topic]
	var message any
	switch {
	case record.Value == nil && g.options.nilHandling == NilIgnore:
		return errNone
	case record.Value == nil && g.options.nilHandling == NilProcess:
	case codec == nil:
		return g.fail(record, fmt.Errorf("cannot handle topic %s", record.Topic))
	default:
		var err error
		if message, err = codec.Decode(record.Value); err != nil {
			return g.fail(record, fmt.Errorf("error decoding message for key %s from %s/%d: %v", record.Key, record.Topic,
				partitionOf(record), err))
		}
	}
	if callback == nil {
		return g.fail(record, fmt.Errorf("error processing message for key %s from %s/%d: %v", record.Key, record.Topic,
			partitionOf(record), error(nil)))
	}
	c := &call{group: g, emission: ctx, record: record, topic: Stream(record.Topic), state: state}
	return g.run(c, callback, message)
}

// run calls a callback and waits for its deferred commits. A panic goes on, as a failure in Goka's words.
func (g *group) run(c *call, callback ProcessCallback, message any) error {
	if err := g.late.take(); err != nil {
		return g.fail(c.record, err)
	}
	g.calls.begin(c)
	defer func() {
		c.finish()
		g.calls.end(c)
		if recovered := recover(); recovered != nil {
			failed := &processing{c.Partition(), fmt.Errorf("panic in callback: %v", recovered), userStack()}
			g.note(failed)
			panic(failed)
		}
	}()
	callback(g.options.contextWrapper(c), message)
	if err := c.wait(); err != nil {
		return g.fail(c.record, err)
	}
	return errNone
}

func (g *group) fail(record stream.KafkaRecord, err error) error {
	failed := &processing{partition: partitionOf(record), err: err}
	g.note(failed)
	return failed
}

// noteLate refuses calls of a callback after its return: Run ends, or without Run the next message, with which the query ends. With
// dead letters no other message pays for it: the log says it.
func (g *group) noteLate(err error) {
	g.options.log.Printf("processor %s: %v", g.graph.Group(), err)
	switch {
	case g.options.keepsDeadLetters:
		return
	case g.abort == nil:
		g.late.note(err)
		return
	}
	g.abort(fmt.Errorf("processor %s: %w", g.graph.Group(), err))
}

// note keeps a failure for Run to return, unless it makes a dead letter, or the processor is being stopped.
func (g *group) note(failed *processing) {
	if !g.options.keepsDeadLetters && !errors.Is(failed, context.Canceled) {
		g.failed.record(failed)
	}
}

// placed sets the partition of a record for which the program has a hasher.
func (g *group) placed(record stream.KafkaRecord) stream.KafkaRecord {
	count := g.partitions[record.Topic]
	if g.options.hasher == nil || count == 0 {
		return record
	}
	place := placeOf(g.options.hasher(), record.Key, count)
	record.Partition = &place
	return record
}

// placeOf returns the partition of a key, as sarama has it.
func placeOf(hasher hash.Hash32, key []byte, count int32) int32 {
	hasher.Write(key)
	place := int32(hasher.Sum32()) % count
	return max(place, -place)
}

// partitionOf returns where a record was read.
func partitionOf(record stream.KafkaRecord) int32 {
	if record.Partition == nil {
		return 0
	}
	return *record.Partition
}

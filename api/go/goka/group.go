package goka

import (
	"context"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// joinedPrefix marks records of joined tables for the group's step: it is put before the name of the record's topic. It
// has a colon, which names of Kafka topics cannot contain.
const joinedPrefix = "table:"

// group runs the callbacks of a graph in this process. Several goroutines use it, because a worker serves several tasks
// of Spark at once.
type group struct {
	graph      *GroupGraph
	options    *poptions
	outputs    map[string]stream.Output[stream.KafkaRecord]
	lookups    map[string]*View
	memory     map[string]*memoryTable // lookup tables if the runtime has no Kafka
	count      int32                   // largest number of partitions of an input, 0 if unknown
	reads      map[string]string       // options of the sources, by which the runtime reaches brokers
	writes     map[string]string       // options of the sinks
	start      string                  // position at which the first run begins to read the inputs
	limit      int                     // largest record that a callback may write, in bytes
	partitions map[string]int32        // partitions of the written topics, set if the program has a hasher
	context    func() context.Context  // the context of the processor or worker, which ends with it
	abort      func(error)             // ends the processor's run with an error; nil if the runtime started the program
	failed     failures
	late       late
	calls      calls
	visits     visits
	counts     counts
}

// newGroup returns the group of a graph. running returns the context of the processor or worker.
func newGroup(graph *GroupGraph, options *poptions, running func() context.Context) (*group, error) {
	if err := graph.checkTopics(); err != nil {
		return nil, err
	}
	reading, writing := orGlobal(options.reads), orGlobal(options.writes)
	reads, err := reach(reading, options.kafka)
	writes := reads
	if err == nil && options.writes != options.reads {
		writes, err = reach(writing, options.kafka)
	}
	if err != nil {
		return nil, err
	}
	g := &group{
		graph: graph, options: options, outputs: map[string]stream.Output[stream.KafkaRecord]{},
		lookups: map[string]*View{}, memory: map[string]*memoryTable{}, partitions: map[string]int32{}, context: running,
		reads: reads, writes: limited(writes, writing), start: startOf(reading), calls: calls{open: map[*call]time.Time{}}, visits: visits{open: map[string]*visited{}},
		counts: counts{partitions: map[int32]*PartitionProcStats{}},
	}
	g.limit, _ = limitOf(writing)
	for _, topic := range graph.written() {
		g.outputs[topic] = stream.NewOutput[stream.KafkaRecord](topic)
	}
	return g, nil
}

// logNotes logs a line for each option that has no effect.
func (g *group) logNotes() {
	for _, note := range g.options.notes {
		g.options.log.Printf("processor %s: %s", g.graph.Group(), note)
	}
}

// assign calls the rebalance callback of the program with all partitions of the inputs.
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

// errNone is the error that a step returns for a processed record. It is not a failure: the step has no result, because
// the callback has emitted all output.
var errNone = stream.ErrSkip

// stateless processes a record of a group without table and joins. It is the function of the group's step.
func (g *group) stateless(ctx context.Context, record stream.KafkaRecord) (*stream.KafkaRecord, error) {
	defer g.rescue(record)
	return nil, g.handle(ctx, record, nil)
}

// stateful processes a record of an input, the loop or a joined table. It is the function of the group's step if the
// group has a table or joins.
func (g *group) stateful(ctx context.Context, record stream.KafkaRecord, state *recordpb.GroupState) (*stream.KafkaRecord, error) {
	defer g.rescue(record)
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

// run calls a callback and waits until all its DeferCommit functions have been called.
func (g *group) run(c *call, callback ProcessCallback, message any) error {
	if err := g.late.take(); err != nil {
		return g.fail(c.record, err)
	}
	g.calls.begin(c)
	defer func() {
		c.finish()
		g.calls.end(c)
	}()
	callback(g.options.contextWrapper(c), message)
	if err := c.wait(); err != nil {
		return g.fail(c.record, err)
	}
	return errNone
}

// rescue is deferred by each step of the group. If code of the program has panicked for a record (a callback, a codec or
// an update callback), it notes the failure, and panics with Goka's text.
func (g *group) rescue(record stream.KafkaRecord) {
	if recovered := recover(); recovered != nil {
		failed := &processing{partitionOf(record), fmt.Errorf("panic in callback: %v", recovered), userStack()}
		g.note(failed)
		panic(failed)
	}
}

// fail notes the failure of a record and returns its error.
func (g *group) fail(record stream.KafkaRecord, err error) error {
	failed := &processing{partition: partitionOf(record), err: err}
	g.note(failed)
	return failed
}

// noteLate handles the error of a goroutine that called a method of its context after the callback had returned. With
// WithDeadLetters the error is only logged, so that no other message fails. Otherwise it ends the run of a Processor,
// or under Serve makes the group's next message fail, which ends the query.
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

// note keeps a failure, so that Run returns it. It ignores the failure if failed messages become dead letters. It also
// ignores the error of the run's context, which means that the run is ending. But it keeps the error of a context that
// the program itself has made and canceled.
func (g *group) note(failed *processing) {
	if ending := g.context().Err(); !g.options.keepsDeadLetters && (ending == nil || failed.err != ending) {
		g.failed.record(failed)
	}
}

// placed returns a record with the partition in which the program's hasher puts its key. Without a hasher, Kafka's
// client chooses the partition.
func (g *group) placed(record stream.KafkaRecord) stream.KafkaRecord {
	count := g.partitions[record.Topic]
	if g.options.hasher == nil || count == 0 {
		return record
	}
	place := placeOf(g.options.hasher(), record.Key, count)
	record.Partition = &place
	return record
}

// placeOf returns the partition of a key among count partitions, in the same way as sarama.
func placeOf(hasher hash.Hash32, key []byte, count int32) int32 {
	hasher.Write(key)
	place := int32(hasher.Sum32()) % count
	return max(place, -place)
}

// partitionOf returns the partition from which a record was read.
func partitionOf(record stream.KafkaRecord) int32 {
	if record.Partition == nil {
		return 0
	}
	return *record.Partition
}

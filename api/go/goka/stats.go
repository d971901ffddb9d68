package goka

import (
	"sync"
	"time"

	"wallarooapi/stream"
)

// counts counts the messages that this process reads and writes, for Processor.Stats: by the partition of the input
// message, in the form of Goka's statistics. A message that is processed again, e.g. after the end of its worker, is
// counted again.
type counts struct {
	mutex      sync.Mutex
	partitions map[int32]*PartitionProcStats
}

// of returns the counts of a partition and creates them if necessary. The caller must hold the mutex.
func (c *counts) of(partition int32) *PartitionProcStats {
	if c.partitions[partition] == nil {
		c.partitions[partition] = &PartitionProcStats{
			TableStats: newTableStats(), Joined: map[string]*TableStats{}, Input: map[string]*InputStats{},
			Output: map[string]*OutputStats{},
		}
	}
	return c.partitions[partition]
}

// newTableStats returns the statistics of a table with all counts at zero.
func newTableStats() *TableStats {
	return &TableStats{Status: PartitionRunning, Recovery: &RecoveryStats{}, Input: &InputStats{}, Writes: &OutputStats{}}
}

// came counts a record of an input or the loop.
func (c *counts) came(partition int32, record stream.KafkaRecord) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	own := c.of(partition)
	if own.Input[record.Topic] == nil {
		own.Input[record.Topic] = &InputStats{}
	}
	add(own.Input[record.Topic], record)
}

// joined counts a record of a joined table.
func (c *counts) joined(partition int32, topic string, record stream.KafkaRecord) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	own := c.of(partition)
	if own.Joined[topic] == nil {
		own.Joined[topic] = newTableStats()
	}
	add(own.Joined[topic].Input, record)
}

// add adds a record to the statistics of an input.
func add(stats *InputStats, record stream.KafkaRecord) {
	stats.Count++
	stats.Bytes += len(record.Value)
	stats.LastOffset = record.Offset
	if !record.Time.IsZero() {
		stats.Delay = time.Since(record.Time)
	}
}

// emitted counts a message that was sent to a topic.
func (c *counts) emitted(partition int32, topic string, size int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	own := c.of(partition)
	if own.Output[topic] == nil {
		own.Output[topic] = &OutputStats{}
	}
	own.Output[topic].Count++
	own.Output[topic].Bytes += size
}

// wrote counts a change of the group's table.
func (c *counts) wrote(partition int32, size int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	writes := c.of(partition).TableStats.Writes
	writes.Count++
	writes.Bytes += size
}

// snapshot returns a copy of the counts. It has all partitions and topics of a group, also those without messages.
func (c *counts) snapshot(graph *GroupGraph, partitions int32) map[int32]*PartitionProcStats {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := map[int32]*PartitionProcStats{}
	for number := range partitions {
		c.of(number)
	}
	for number, own := range c.partitions {
		all[number] = clone(own, graph)
	}
	return all
}

// clone copies the statistics of a partition. The copy has an entry for each topic of the graph.
func clone(own *PartitionProcStats, graph *GroupGraph) *PartitionProcStats {
	made := &PartitionProcStats{
		Now: time.Now(), Joined: map[string]*TableStats{}, Input: map[string]*InputStats{}, Output: map[string]*OutputStats{},
	}
	if graph.GroupTable() != nil {
		made.TableStats = cloneTable(own.TableStats)
	}
	for _, topic := range graph.JointTables().Topics() {
		made.Joined[topic] = cloneTable(own.Joined[topic])
	}
	for _, topic := range graph.of(input, loop).Topics() {
		made.Input[topic] = cloneOf(own.Input[topic])
	}
	for _, topic := range graph.written() {
		made.Output[topic] = cloneOf(own.Output[topic])
	}
	return made
}

func cloneTable(of *TableStats) *TableStats {
	if of == nil {
		return newTableStats()
	}
	made := *of
	made.Recovery, made.Input, made.Writes = cloneOf(of.Recovery), cloneOf(of.Input), cloneOf(of.Writes)
	return &made
}

// cloneOf copies the target of a pointer. For nil it returns a zero value, because nothing was counted.
func cloneOf[T any](of *T) *T {
	made := new(T)
	if of != nil {
		*made = *of
	}
	return made
}

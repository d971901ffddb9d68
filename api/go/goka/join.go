package goka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lovoo/goka/storage"

	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// asJoined is the function of the step after the source of a joined table. It marks the table's records, because the
// same topic may also be an input.
func asJoined(_ context.Context, record stream.KafkaRecord) (stream.KafkaRecord, error) {
	record.Topic = joinedPrefix + record.Topic
	return record, nil
}

// update passes a record of a joined table to the update callback, which stores the table's value in the state of the
// record's key.
func (g *group) update(topic string, record stream.KafkaRecord, state *recordpb.GroupState) error {
	g.counts.joined(partitionOf(record), topic, record)
	kept := &joinedStorage{key: string(record.Key), topic: topic, state: state}
	apply := g.options.updateCallback
	if apply == nil {
		apply = DefaultUpdate
	}
	if err := apply(updateContext{topic, record}, kept, kept.key, record.Value); err != nil {
		return g.fail(record, fmt.Errorf("error updating table %s, key %s: %v", topic, kept.key, err))
	}
	return errNone
}

// updateContext is the context of an update callback for one record.
type updateContext struct {
	topic  string
	record stream.KafkaRecord
}

func (u updateContext) Topic() Stream { return Stream(u.topic) }

func (u updateContext) Partition() int32 { return partitionOf(u.record) }

func (u updateContext) Offset() int64 { return u.record.Offset }

func (u updateContext) Headers() Headers { return headersOf(u.record) }

func (u updateContext) Timestamp() time.Time { return u.record.Time }

func (c *call) Join(topic Table) any {
	if !c.enter("Join") {
		return nil
	}
	defer c.mutex.Unlock()
	if !c.group.graph.has(joint, string(topic)) {
		c.Fail(fmt.Errorf("table %s not subscribed", topic))
	}
	data, has := c.state.GetJoined()[string(topic)]
	if !has {
		return nil
	}
	value, err := c.group.graph.codecs[string(topic)].Decode(bytes.Clone(data))
	if err != nil {
		c.Fail(fmt.Errorf("error decoding value key %s of table %s: %v", c.Key(), topic, err))
	}
	return value
}

// joinedStorage is the storage that an update callback gets. It contains only one value: the value of the joined table
// for the key of the callback's record. This value is part of the key's state.
type joinedStorage struct {
	key, topic string
	state      *recordpb.GroupState
}

var _ storage.Storage = (*joinedStorage)(nil)

var errOtherKey = errors.New("an update callback reads and writes the key of its record alone")

func (s *joinedStorage) Open() error { return nil }

func (s *joinedStorage) Close() error { return nil }

func (s *joinedStorage) MarkRecovered() error { return nil }

func (s *joinedStorage) GetOffset(otherwise int64) (int64, error) { return otherwise, nil }

func (s *joinedStorage) SetOffset(int64) error { return nil }

func (s *joinedStorage) Has(key string) (bool, error) {
	value, err := s.Get(key)
	return value != nil, err
}

func (s *joinedStorage) Get(key string) ([]byte, error) {
	if key != s.key {
		return nil, errOtherKey
	}
	return bytes.Clone(s.state.GetJoined()[s.topic]), nil
}

func (s *joinedStorage) Set(key string, value []byte) error {
	if key != s.key {
		return errOtherKey
	}
	if s.state.Joined == nil {
		s.state.Joined = map[string][]byte{}
	}
	s.state.Joined[s.topic] = append([]byte{}, value...)
	return nil
}

func (s *joinedStorage) Delete(key string) error {
	if key != s.key {
		return errOtherKey
	}
	delete(s.state.GetJoined(), s.topic)
	return nil
}

func (s *joinedStorage) Iterator() (storage.Iterator, error) { return nil, errOtherKey }

func (s *joinedStorage) IteratorWithRange(_, _ []byte) (storage.Iterator, error) {
	return nil, errOtherKey
}

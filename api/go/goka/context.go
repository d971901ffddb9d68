package goka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-multierror"
	theirs "github.com/lovoo/goka"

	"wallarooapi/internal/recordpb"
	"wallarooapi/internal/span"
	"wallarooapi/stream"
)

// call is the Context that a callback gets for one message or visit. Its methods panic with Goka's error texts.
type call struct {
	group    *group
	emission context.Context // context of the step, through which it emits to outputs
	record   stream.KafkaRecord
	topic    Stream
	isVisit  bool

	mutex    sync.Mutex           // guards the following fields and the outputs, because goroutines of a callback may share its context
	headers  Headers              // of the record, set by the first call of Headers
	state    *recordpb.GroupState // nil in a group without table and joins
	deferred []chan error
	isOver   bool // the callback and its deferred functions have returned; the state now belongs to other calls
}

var _ theirs.Context = (*call)(nil)

func (c *call) Topic() Stream { return c.topic }

func (c *call) Key() string { return string(c.record.Key) }

func (c *call) Partition() int32 { return partitionOf(c.record) }

func (c *call) Offset() int64 { return c.record.Offset }

func (c *call) Group() Group { return c.group.graph.Group() }

func (c *call) Timestamp() time.Time { return c.record.Time }

// Context returns a context that ends with the processor. If the runtime traces the call, it also contains the span of
// the call.
func (c *call) Context() context.Context { return span.Carry(c.group.context(), c.emission) }

func (c *call) Fail(err error) { panic(err) }

func (c *call) Headers() Headers {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.headers == nil {
		c.headers = headersOf(c.record)
	}
	return c.headers
}

func (c *call) Value() any {
	if !c.enter("Value") {
		return nil
	}
	defer c.mutex.Unlock()
	own := c.group.graph.GroupTable()
	if own == nil {
		c.Fail(errStateless)
	}
	if c.state.GetValue() == nil {
		return nil
	}
	value, err := own.Codec().Decode(bytes.Clone(c.state.GetValue()))
	if err != nil {
		c.Fail(fmt.Errorf("error decoding value: %v", err))
	}
	return value
}

func (c *call) SetValue(value any, options ...ContextOption) {
	if !c.enter("SetValue") {
		return
	}
	defer c.mutex.Unlock()
	own := c.group.graph.GroupTable()
	if own == nil {
		c.Fail(errStateless)
	}
	if value == nil {
		c.Fail(errors.New("cannot set nil as value"))
	}
	encoded, err := own.Codec().Encode(value)
	if err != nil {
		c.Fail(fmt.Errorf("error encoding value: %v", err))
	}
	c.state.Value = append([]byte{}, encoded...)
	c.emit(own.Topic(), c.Key(), encoded, headersIn(options))
	c.group.counts.wrote(c.Partition(), len(encoded))
}

func (c *call) Delete(options ...ContextOption) {
	if !c.enter("Delete") {
		return
	}
	defer c.mutex.Unlock()
	own := c.group.graph.GroupTable()
	if own == nil {
		c.Fail(errStateless)
	}
	c.state.Value = nil
	c.send(own.Topic(), c.Key(), nil, headersIn(options)) // Goka does not count deletions either
}

func (c *call) Lookup(topic Table, key string) any {
	table, has := c.group.lookedUp(string(topic))
	if !has {
		c.Fail(fmt.Errorf("topic %s not subscribed", topic))
	}
	value, err := table.Get(key)
	if err != nil {
		c.Fail(fmt.Errorf("error getting key %s of table %s: %v", key, topic, err))
	}
	return value
}

func (c *call) Emit(topic Stream, key string, value any, options ...ContextOption) {
	if !c.enter("Emit") {
		return
	}
	defer c.mutex.Unlock()
	graph := c.group.graph
	switch {
	case topic == "":
		c.Fail(errors.New("cannot emit to empty topic"))
	case string(topic) == graph.loopTopic:
		c.Fail(errors.New("cannot emit to loop topic (use Loopback instead)"))
	case string(topic) == graph.tableTopic:
		c.Fail(errors.New("cannot emit to table topic (use SetValue instead)"))
	case !graph.has(output, string(topic)):
		c.Fail(fmt.Errorf("topic %s is not configured for output. Did you specify goka.Output(..) when defining the processor?", topic))
	}
	codec := graph.codecs[string(topic)]
	if codec == nil {
		c.Fail(fmt.Errorf("no codec for topic %s", topic))
	}
	var data []byte
	if value != nil {
		var err error
		if data, err = codec.Encode(value); err != nil {
			c.Fail(fmt.Errorf("error encoding message for topic %s: %v", topic, err))
		}
	}
	c.emit(string(topic), key, data, c.group.options.defaultHeaders.Merged(headersIn(options)))
}

func (c *call) Loopback(key string, value any, options ...ContextOption) {
	if !c.enter("Loopback") {
		return
	}
	defer c.mutex.Unlock()
	own := c.group.graph.LoopStream()
	if own == nil {
		c.Fail(errors.New("no loop topic configured"))
	}
	data, err := own.Codec().Encode(value)
	if err != nil {
		c.Fail(fmt.Errorf("error encoding message for key %s: %v", key, err))
	}
	c.emit(own.Topic(), key, data, c.group.options.defaultHeaders.Merged(headersIn(options)))
}

// emit sends a record to a topic that the group writes, and counts it for Stats.
func (c *call) emit(topic, key string, value []byte, headers Headers) {
	c.send(topic, key, value, headers)
	c.group.counts.emitted(c.Partition(), topic, len(value))
}

// send emits a record to the step's output for a topic. It copies value and headers, because the callback may change
// them.
func (c *call) send(topic, key string, value []byte, headers Headers) {
	record := stream.KafkaRecord{Topic: topic, Key: []byte(key), Value: bytes.Clone(value)}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !utf8.ValidString(name) {
			c.Fail(fmt.Errorf("the header %q of the record of key %.80s for topic %s has a name that is not UTF-8; write other bytes into its value", name, key, topic))
		}
		record.Headers = append(record.Headers, stream.KafkaHeader{Key: name, Value: bytes.Clone(headers[name])})
	}
	if err := checkSize(record, c.group.limit); err != nil {
		c.Fail(err)
	}
	c.group.outputs[topic].Emit(c.emission, c.group.placed(record))
}

func (c *call) DeferCommit() func(error) {
	if !c.enter("DeferCommit") {
		return func(error) {}
	}
	defer c.mutex.Unlock()
	done := make(chan error, 1)
	c.deferred = append(c.deferred, done)
	var once sync.Once
	return func(err error) { once.Do(func() { done <- err }) }
}

// enter reports whether the callback still runs. Each method that uses state or outputs calls it first. If it returns
// true, it has locked the mutex, and the method must unlock it. Otherwise it has reported the late call, the mutex is
// not locked, and the method must have no effect.
func (c *call) enter(method string) bool {
	c.mutex.Lock()
	if !c.isOver {
		return true
	}
	c.mutex.Unlock()
	c.group.noteLate(fmt.Errorf("ctx.%s was called after the callback had returned, for %s: it has no effect; a callback whose goroutines "+
		"use its context calls ctx.DeferCommit, and they call the function that it returns when they are done", method, c))
	return false
}

// finish marks the call as over, so that its methods have no effect from now on.
func (c *call) finish() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.isOver = true
}

// String describes the message of the call for errors and logs.
func (c *call) String() string {
	if c.isVisit {
		return fmt.Sprintf("key %s in the visit %s", c.Key(), c.topic)
	}
	return fmt.Sprintf("key %s from %s/%d, offset %d", c.Key(), c.topic, c.Partition(), c.Offset())
}

// wait waits until every function that DeferCommit returned has been called, and returns the errors that were passed to
// these functions.
func (c *call) wait() error {
	var all *multierror.Error
	for number := 0; ; number++ {
		done := c.deferredAt(number)
		if done == nil {
			break
		}
		select {
		case err := <-done:
			if err != nil {
				all = multierror.Append(all, err)
			}
		case <-c.Context().Done():
			return c.Context().Err()
		}
	}
	if all.ErrorOrNil() == nil {
		return nil
	}
	return fmt.Errorf("asynchronous error from callback: could not commit message with key '%s': %w", c.Key(), all)
}

// deferredAt returns the channel of a call of DeferCommit; the first call has the number 0. If there was no such call,
// it returns nil. From then on the methods of the context have no effect.
func (c *call) deferredAt(number int) chan error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if number < len(c.deferred) {
		return c.deferred[number]
	}
	c.isOver = true
	return nil
}

//lint:ignore ST1005 the text is Goka's
var errStateless = errors.New("Cannot access state in stateless processor")

// headersIn returns the headers that the program has passed as options of a method such as Emit. Goka stores them in an
// unexported type, which only its options and reflection can reach.
func headersIn(options []ContextOption) Headers {
	if len(options) == 0 {
		return nil
	}
	set := reflect.New(reflect.TypeFor[ContextOption]().In(0).Elem())
	for _, option := range options {
		reflect.ValueOf(option).Call([]reflect.Value{set})
	}
	headers := Headers{}
	for entry := set.Elem().FieldByName("emitHeaders").MapRange(); entry.Next(); {
		headers[entry.Key().String()] = entry.Value().Bytes()
	}
	return headers
}

// headersOf returns the headers of a record. If a name repeats, the last value counts.
func headersOf(record stream.KafkaRecord) Headers {
	headers := Headers{}
	for _, header := range record.Headers {
		headers[header.Key] = header.Value
	}
	return headers
}

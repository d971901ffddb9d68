package stage

import (
	"encoding/binary"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// maxKnownKeys is the maximum number of keys that a key exit caches.
const maxKnownKeys = 1 << 16

// keyExit is the exit to a state step after a shuffle. It serializes messages into frames, one for each bucket.
type keyExit struct {
	node      *node
	partition func(any) []byte // nil to use the key of the message
	known     map[string]*knownKey
	buckets   []*writer
}

// knownKey is the cache entry of a key: the writer that makes the frames of its bucket, and the position of the key in
// the key list of the current frame.
type knownKey struct {
	writer   *writer
	frames   uint32 // number of frames of the writer when position was assigned
	position uint32
}

// newKeyExit makes the exit to a state step. If another program runs this step, the exit cannot call its partition
// function. Then it uses the key that a message carries, or the empty key if it carries none.
func newKeyExit(n *node, d *pb.Node, description *pb.Stage) (*keyExit, error) {
	k := &keyExit{node: n, known: map[string]*knownKey{}}
	switch {
	case n.step != nil && n.step.Remote == nil:
		k.partition = n.step.Partition
	case !d.GetKeys():
		k.partition = func(any) []byte { return []byte{} }
	}
	k.buckets = make([]*writer, description.GetBucketCount())
	for i := range k.buckets {
		encoder, err := writingOf(d)
		if err != nil {
			return nil, err
		}
		w := newWriter(n.x, uint16(d.GetPort()), int32(i), frameBytes(description), encoder.Encoding())
		w.encoder, w.timestamps = encoder, d.GetTimestamps()
		k.buckets[i] = w
	}
	return k, nil
}

func (k *keyExit) write(value any) {
	key := k.node.x.key
	if k.partition != nil {
		var ok bool
		if key, ok = k.node.askKey(k.partition, value); !ok {
			return
		}
	}
	if len(key) > maxValueBytes && k.node.buryIfTooLarge(value, 0, len(key)) {
		return
	}
	at := k.lookup(key)
	w := at.writer
	before := len(w.builder.Buffer())
	buffer, err := w.encoder.Append(w.builder.Buffer(), value)
	if err != nil {
		k.node.buryUnwritten(w.encoder, value, err)
		return
	}
	if k.node.buryIfTooLarge(value, len(buffer)-before, len(key)) {
		w.abandon()
		return
	}
	if at.frames != w.frames {
		at.frames, at.position = w.frames, w.builder.AddKey(key)
	}
	w.builder.UseKey(at.position)
	w.extend(buffer)
}

// lookup returns the cache entry of a key, and makes it for a new key. If the cache is full, it is emptied.
func (k *keyExit) lookup(key []byte) *knownKey {
	if at, ok := k.known[string(key)]; ok {
		return at
	}
	if len(k.known) >= maxKnownKeys {
		k.flush()
		clear(k.known)
	}
	w := k.buckets[topology.Bucket(key, uint32(len(k.buckets)))]
	at := &knownKey{writer: w, frames: w.frames - 1}
	k.known[string(key)] = at
	return at
}

func (k *keyExit) flush() {
	for _, w := range k.buckets {
		w.flush()
	}
}

// partitionHeader is the name of the header with which a message states its partition of the sink's Kafka topic.
const partitionHeader = "partition"

// sinkExit is the exit to a sink. It encodes messages with the program's encoder.
type sinkExit struct {
	node    *node
	encode  declaration.RecordEncoder
	hasKeys bool
	writer  *writer
	keys    positions
}

// positions maps each key of a writer's current frame to the position of the key in this frame.
type positions struct {
	known  map[string]uint32
	frames uint32 // number of frames of the writer when known was last cleared
}

// use sets the key of the next message in a writer, and adds a new key to the frame.
func (p *positions) use(w *writer, key []byte) {
	if p.frames != w.frames {
		clear(p.known)
		p.frames = w.frames
	}
	position, ok := p.known[string(key)]
	if !ok {
		position = w.builder.AddKey(key)
		p.known[string(key)] = position
	}
	w.builder.UseKey(position)
}

func newSink(n *node, sink *declaration.Sink, w *writer) exit {
	return &sinkExit{n, sink.Encode, sink.HasKeys, w, positions{known: map[string]uint32{}}}
}

func (s *sinkExit) write(data any) {
	value, key, partition := s.ask(data)
	if value == nil {
		return
	}
	if s.node.buryIfTooLarge(data, len(value), len(key)) {
		return
	}
	s.node.out++
	w := s.writer
	if s.hasKeys {
		s.keys.use(w, key)
	}
	if partition >= 0 {
		w.builder.UseHeader(partitionHeader, binary.LittleEndian.AppendUint32(nil, uint32(partition)))
	}
	w.add(value)
}

func (s *sinkExit) ask(data any) (value, key []byte, partition int32) {
	defer s.node.rescue(data)
	return s.encode(data)
}

func (s *sinkExit) flush() { s.writer.flush() }

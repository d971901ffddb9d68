package stage

import (
	wa "wallarooapi"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// maxKnownKeys is the maximum number of keys that a key exit caches.
const maxKnownKeys = 1 << 16

// sinkExit encodes messages for a sink.
type sinkExit struct {
	node    *node
	encoder wa.Encoder
	writer  *writer
}

func (s *sinkExit) write(value any) {
	bytes := s.encode(value)
	if bytes == nil {
		return
	}
	if s.node.buryIfTooLarge(value, len(bytes), 0) {
		return
	}
	s.node.out++
	s.writer.add(bytes)
}

func (s *sinkExit) encode(value any) []byte {
	defer s.node.rescue(value)
	return s.encoder.Encode(value)
}

func (s *sinkExit) flush() { s.writer.flush() }

// keyExit serializes messages for a state step into frames per bucket.
type keyExit struct {
	node      *node
	partition func(any) []byte // nil to use the key of the message
	known     map[string]*knownKey
	buckets   []*writer
}

// knownKey is a cache entry: the bucket of a key, and the key's position in the current frame of this bucket.
type knownKey struct {
	writer   *writer
	frames   uint32 // number of frames of the writer when position was assigned
	position uint32
}

// newKeyExit makes the exit to a state step. If another program hosts the step, the exit uses the key that a message
// carries, or the empty key if it carries none.
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

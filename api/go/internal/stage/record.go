package stage

import (
	"encoding/binary"

	"wallarooapi/internal/declaration"
)

// partitionHeader names the header in which a record's partition stands.
const partitionHeader = "partition"

// recordExit makes records, with keys, for a sink.
type recordExit struct {
	node   *node
	encode declaration.RecordEncoder
	writer *writer
	known  map[string]uint32 // positions of keys in the frame under way
	frames uint32            // of the writer when known was begun
}

func newSink(n *node, sink *declaration.Sink, w *writer) exit {
	if sink.Keyed == nil {
		return &sinkExit{n, sink.Encoder, w}
	}
	return &recordExit{node: n, encode: sink.Keyed, writer: w, known: map[string]uint32{}}
}

func (r *recordExit) write(data any) {
	value, key, partition := r.ask(data)
	if value == nil {
		return
	}
	if size := len(value) + len(key); size > maxValueBytes {
		r.node.bury("C504", data, tooLong(size), "")
		return
	}
	r.node.out++
	w := r.writer
	if r.frames != w.frames {
		clear(r.known)
		r.frames = w.frames
	}
	position, ok := r.known[string(key)]
	if !ok {
		position = w.builder.AddKey(key)
		r.known[string(key)] = position
	}
	w.builder.UseKey(position)
	if partition >= 0 {
		w.builder.UseHeader(partitionHeader, binary.LittleEndian.AppendUint32(nil, uint32(partition)))
	}
	w.add(value)
}

func (r *recordExit) ask(data any) (value, key []byte, partition int32) {
	defer r.node.rescue(data)
	return r.encode(data)
}

func (r *recordExit) flush() { r.writer.flush() }

package stage

import (
	"encoding/binary"

	"wallarooapi/internal/declaration"
)

// partitionHeader is the name of the header for the partition of a record.
const partitionHeader = "partition"

// recordExit encodes messages as records with keys for a sink.
type recordExit struct {
	node   *node
	encode declaration.RecordEncoder
	writer *writer
	keys   positions
}

// positions maps each key of a writer's current frame to the position of the key in this frame.
type positions struct {
	known  map[string]uint32
	frames uint32 // number of frames of the writer when known was last cleared
}

// use sets the key of the next message in a writer.
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
	if sink.Keyed == nil {
		return &sinkExit{n, sink.Encoder, w}
	}
	return &recordExit{node: n, encode: sink.Keyed, writer: w, keys: positions{known: map[string]uint32{}}}
}

func (r *recordExit) write(data any) {
	value, key, partition := r.ask(data)
	if value == nil {
		return
	}
	if r.node.buryIfTooLarge(data, len(value), len(key)) {
		return
	}
	r.node.out++
	w := r.writer
	r.keys.use(w, key)
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

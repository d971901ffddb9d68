package stage

import "wallarooapi/internal/frame"

// writer collects messages that leave the stage for one port and bucket, and emits them as frames.
type writer struct {
	x          *Executor
	bucket     int32
	frameBytes int
	frames     uint32 // number of frames emitted so far; key positions are valid only within one frame
	timestamps bool   // whether each message gets a timestamp
	builder    frame.Builder
	encoder    writing // nil if values are already bytes
}

func newWriter(x *Executor, port uint16, bucket int32, frameBytes int, encoding byte) *writer {
	w := &writer{x: x, bucket: bucket, frameBytes: frameBytes}
	w.builder.Port, w.builder.Encoding = port, encoding
	return w
}

// add adds a message: these bytes, with the sequence number and time of the message in flight.
func (w *writer) add(value []byte) { w.extend(append(w.builder.Buffer(), value...)) }

// extend is add for a value that the caller has appended to the builder's buffer.
func (w *writer) extend(buffer []byte) {
	if w.builder.Count() == 0 {
		w.builder.TimestampMs = w.x.timestamp
	}
	w.builder.UseSequence(w.x.sequence)
	if w.timestamps {
		w.builder.UseTimestamp(w.x.timestamp)
	}
	w.builder.Extend(buffer)
	if w.builder.BodyBytes() > w.frameBytes {
		w.flush()
	}
}

// abandon discards a message that the encoder has written but that is too large to send. The next message begins a new
// frame: the encoder describes a type only once in a frame, and the discarded message may have had the description.
func (w *writer) abandon() {
	w.flush()
	w.encoder.Reset()
}

func (w *writer) flush() {
	if w.builder.Count() == 0 {
		return
	}
	bytes, err := w.builder.Frame()
	if err == nil {
		err = w.x.emit(w.builder.Port, w.bucket, bytes)
	}
	if err != nil && w.x.err == nil {
		w.x.err = err
	}
	w.frames++
	w.builder.Reset()
	if w.encoder != nil {
		w.encoder.Reset()
	}
}

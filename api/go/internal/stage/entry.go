package stage

import (
	"bytes"
	"encoding/hex"
	"fmt"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/trace"
	pb "wallarooapi/internal/workerpb"
)

// entry has the fields of a SOURCE node. It cuts bytes from the network into messages, and decodes their payloads.
type entry struct {
	decoder     wa.Decoder
	framed      wa.FramedDecoder          // nil if the source is not framed
	record      declaration.RecordDecoder // decoder of whole records; nil if the decoder gets only values
	eventTime   func(payload []byte) int64
	generated   bool // messages are serialized objects of a generator, for which there is no decoder
	framing     topology.Framing
	headerBytes int
	x           *Executor
}

func newEntry(source *declaration.Source) *entry {
	framing := source.Framing()
	e := &entry{decoder: source.Decoder, framed: source.Framed, framing: framing, headerBytes: framing.HeaderBytes}
	e.record, _ = source.Given.(declaration.RecordDecoder)
	e.generated, e.eventTime = source.Generator != nil, source.EventTime
	return e
}

// runSource decodes the messages of the current frame, which come from a source.
func (x *Executor) runSource(n *node) error {
	f := &x.frame
	switch f.Encoding {
	case frame.Framed:
		if n.source.framing.Kind == topology.NewlineFraming {
			return x.runLines(n)
		}
		return x.runFramed(n)
	case frame.Plain:
		return x.runPlain(n, n.source.read)
	case codec.Native, codec.Custom:
		if n.source.generated {
			return x.runPlain(n, x.readGenerated)
		}
	}
	return damaged(fmt.Errorf("values of a source have encoding %d", f.Encoding))
}

// runPlain processes messages whose lengths are in a column of the frame. read decodes each of them.
func (x *Executor) runPlain(n *node, read func(payload []byte, i int) any) error {
	f := &x.frame
	data := f.Values
	for i := 0; i < f.Count && x.err == nil; i++ {
		length := f.Lengths.At(i)
		payload := data[:length:length]
		data = data[length:]
		x.begin(i)
		if f.Flags&frame.FlagKeys != 0 {
			x.key = f.Keys[f.KeyIndexes.At(i)]
		}
		if f.IsAbsent(i) {
			payload = nil
		}
		n.runPayload(payload, i, x.enter(), read)
	}
	return nil
}

// read decodes the payload of a message in the current frame. It also determines the event time if the stage needs it.
func (e *entry) read(payload []byte, i int) any {
	message := e.decode(payload, i)
	if message != nil && e.eventTime != nil && e.x.hasTimes {
		e.x.timestamp = e.eventTime(payload)
	}
	return message
}

func (e *entry) decode(payload []byte, i int) any {
	if e.record == nil {
		return e.decoder.Decode(payload)
	}
	record := declaration.Record{Key: e.x.key, TimestampMs: e.x.timestamp}
	if len(e.x.frame.Headers) > 0 {
		record.Headers = e.x.frame.Headers[i]
	}
	return e.record.DecodeRecord(payload, record)
}

// readGenerated deserializes a message of a generator. If this fails, it panics, as a failing decoder does, so that the
// message becomes a dead letter.
func (x *Executor) readGenerated(value []byte, _ int) any {
	message, err := x.decoder.Decode(x.frame.Encoding, value)
	if err != nil {
		panic(err)
	}
	return message
}

// begin makes message i of the frame the current message: it sets port, sequence number, time and key.
func (x *Executor) begin(i int) {
	x.fromPort, x.sequence, x.timestamp, x.key = x.frame.Port, x.frame.SequenceOf(i), x.frame.TimestampOf(i), nil
}

// runFramed processes messages of a TCP source that follow each other as header and payload.
func (x *Executor) runFramed(n *node) error {
	data, read := x.frame.Values, n.source.read
	for i := 0; i < x.frame.Count && x.err == nil; i++ {
		if len(data) < n.source.headerBytes {
			return damaged(fmt.Errorf("%d bytes are left for the header of message %d", len(data), i))
		}
		x.begin(i)
		size := n.source.headerBytes
		skip := x.enter()
		length, fault, err := n.source.length(data[:size:size], skip == nil)
		if err != nil {
			return err
		}
		data = data[size:]
		if length > uint64(len(data)) {
			return damaged(fmt.Errorf("%d bytes are left for the %d bytes of message %d", len(data), length, i))
		}
		payload := data[:length:length]
		data = data[length:]
		if fault != "" {
			n.in++
			n.buryBytes("C506", payload, frame.Plain, fault, "")
			continue
		}
		n.runPayload(payload, i, skip, read)
	}
	if len(data) > 0 && x.err == nil {
		return damaged(fmt.Errorf("%d bytes are left after the last message", len(data)))
	}
	return nil
}

// runLines processes messages of a TCP source that are lines.
func (x *Executor) runLines(n *node) error {
	data, read := x.frame.Values, n.source.read
	for i := 0; i < x.frame.Count && x.err == nil; i++ {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return damaged(fmt.Errorf("%d bytes are left without a line break for message %d", len(data), i))
		}
		line := bytes.TrimSuffix(data[:end:end], []byte{'\r'})
		data = data[end+1:]
		x.begin(i)
		n.runPayload(line, i, x.enter(), read)
	}
	if len(data) > 0 && x.err == nil {
		return damaged(fmt.Errorf("%d bytes are left after the last line", len(data)))
	}
	return nil
}

// length returns the payload length in a header. It follows the framing in the topology, or asks the decoder if the
// framing is known only to the decoder. With compare it always asks the decoder, and fault describes a difference.
func (e *entry) length(header []byte, compare bool) (length uint64, fault string, err error) {
	if !compare && e.framing.Kind != topology.WorkerFraming {
		return e.framing.Length(header), "", nil
	}
	answer, reason := e.ask(header)
	if e.framing.Kind == topology.WorkerFraming {
		if reason != "" {
			return 0, "", &Failure{Code: "C505", Reason: "PayloadLength panicked: " + reason}
		}
		return answer, "", nil
	}
	length = e.framing.Length(header)
	switch {
	case reason != "":
		fault = "payload_length panics for header " + hex.EncodeToString(header) + ": " + reason
	case answer != length:
		fault = fmt.Sprintf("payload_length returns %d for header %s; the topology's framing expects %d",
			answer, hex.EncodeToString(header), length)
	}
	return length, fault, nil
}

// ask calls the decoder's PayloadLength. If it panics, fault is the reason.
func (e *entry) ask(header []byte) (length uint64, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault, _ = trace.Panic(r)
		}
	}()
	return e.framed.PayloadLength(header), ""
}

// runPayload decodes message i of the current frame with read, and passes it to the successors of the source.
func (n *node) runPayload(payload []byte, i int, skip *pb.Skip, read func(payload []byte, i int) any) {
	n.in++
	if skip != nil {
		n.buryBytes(skip.GetCode(), payload, n.source.encoding(), skip.GetReason(), "")
		return
	}
	n.forward(n.decode(payload, i, read))
}

// encoding returns the encoding of the source's payloads, for its dead letters.
func (e *entry) encoding() byte {
	if e.generated {
		return e.x.frame.Encoding
	}
	return frame.Plain
}

func (n *node) decode(payload []byte, i int, read func(payload []byte, i int) any) any {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			n.buryBytes("C505", payload, n.source.encoding(), reason, stack)
		}
	}()
	return read(payload, i)
}

// Split finds the complete messages at the start of data, for a gateway that does not know the framing of the source.
// It returns their lengths, and the length of the next message if its header is complete. A message longer than limit
// never counts as complete.
func Split(source *declaration.Source, data []byte, limit uint64) (lengths []uint32, wanted uint64, err error) {
	err = apart("C505", source.Name, func() (err error) {
		lengths, wanted, err = split(source, data, limit)
		return err
	})
	return lengths, wanted, err
}

func split(source *declaration.Source, data []byte, limit uint64) (lengths []uint32, wanted uint64, err error) {
	e := newEntry(source)
	if e.framing.Kind == topology.NewlineFraming {
		return splitLines(data), 0, nil
	}
	size := uint64(e.headerBytes)
	for uint64(len(data)) >= size {
		length, fault := e.ask(data[:size:size])
		if fault != "" {
			return lengths, 0, &Failure{Code: "C505", Reason: source.Name + ": PayloadLength panicked: " + diagnostic.Cut(fault, previewCharacters)}
		}
		whole := size + length
		if whole < length {
			return lengths, length, nil
		}
		if length > limit || whole > uint64(len(data)) {
			return lengths, whole, nil
		}
		lengths = append(lengths, uint32(whole))
		data = data[whole:]
	}
	return lengths, 0, nil
}

// splitLines returns the lengths of the complete lines at the start of data, including their ends.
func splitLines(data []byte) (lengths []uint32) {
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return lengths
		}
		lengths = append(lengths, uint32(end+1))
		data = data[end+1:]
	}
}

package stage

import (
	"encoding/hex"
	"fmt"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/trace"
	pb "wallarooapi/internal/workerpb"
)

// entry is where the messages of a source enter: wire bytes are cut and decoded.
type entry struct {
	decoder     wa.FramedDecoder
	framing     topology.Framing
	headerBytes int
}

func newEntry(source *declaration.Source) *entry {
	return &entry{source.Decoder, source.Framing, source.Framing.HeaderBytes}
}

// runSource runs the messages of the frame at hand.
func (x *Executor) runSource(n *node) error {
	f := &x.frame
	switch f.Encoding {
	case frame.Framed:
		return x.runFramed(n)
	case frame.Plain:
		data := f.Values
		for i := 0; i < f.Count && x.err == nil; i++ {
			length := f.Lengths.At(i)
			x.begin(i)
			n.runPayload(data[:length:length], x.enter())
			data = data[length:]
		}
		return nil
	}
	return damaged(fmt.Errorf("values of a source have encoding %d", f.Encoding))
}

// begin notes which message of the frame is at work.
func (x *Executor) begin(i int) {
	x.fromPort, x.sequence, x.timestamp = x.frame.Port, x.frame.SequenceOf(i), x.frame.TimestampOf(i)
}

func (x *Executor) runFramed(n *node) error {
	data := x.frame.Values
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
		n.runPayload(payload, skip)
	}
	if len(data) > 0 && x.err == nil {
		return damaged(fmt.Errorf("%d bytes are left behind the last message", len(data)))
	}
	return nil
}

// length reads a header. Where the topology names the framing the decoder's answer is only compared, or not asked for.
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
		fault = fmt.Sprintf("payload_length gives %d for header %s; the topology's framing gives %d",
			answer, hex.EncodeToString(header), length)
	}
	return length, fault, nil
}

func (e *entry) ask(header []byte) (length uint64, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault, _ = trace.Panic(r)
		}
	}()
	return e.decoder.PayloadLength(header), ""
}

func (n *node) runPayload(payload []byte, skip *pb.Skip) {
	n.in++
	if skip != nil {
		n.buryBytes(skip.GetCode(), payload, frame.Plain, skip.GetReason(), "")
		return
	}
	n.forward(n.decode(payload))
}

func (n *node) decode(payload []byte) any {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			n.buryBytes("C505", payload, frame.Plain, reason, stack)
		}
	}()
	return n.source.decoder.Decode(payload)
}

// Split returns the lengths of the whole messages at the start of data, and how long the message behind them is when its
// header is there. A message longer than limit is not whole, however much is there.
func Split(source *declaration.Source, data []byte, limit uint64) (lengths []uint32, wanted uint64, err error) {
	e := newEntry(source)
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

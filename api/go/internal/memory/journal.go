package memory

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
)

// Arrival is a message that arrives at a source.
type Arrival struct {
	Value       []byte
	IsAbsent    bool // the record has no value, as in a tombstone
	Key         []byte
	TimestampMs int64
	Headers     []RecordHeader
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string
	Value []byte
}

// Journal writes the input of an application as frames, and numbers the messages in arrival order.
type Journal struct{ next uint64 }

// Write returns a frame with messages of one source.
func (j *Journal) Write(port uint16, encoding byte, hasKeys bool, arrivals []Arrival) ([]byte, error) {
	b := frame.Builder{Port: port, Encoding: encoding}
	for _, each := range arrivals {
		if hasKeys {
			b.UseKey(b.AddKey(each.Key))
		}
		b.UseSequence(j.next)
		b.UseTimestamp(each.TimestampMs)
		for _, header := range each.Headers {
			b.UseHeader(header.Name, header.Value)
		}
		if each.IsAbsent {
			b.AddAbsent()
		} else {
			b.Add(each.Value)
		}
		j.next++
	}
	return b.Frame()
}

// Wire returns a frame with messages of a TCP source. data has them as they arrive over the network, with their
// framing.
func (j *Journal) Wire(port uint16, timestampMs int64, count int, data []byte) ([]byte, error) {
	first := j.next
	j.next += uint64(count)
	return frame.WriteFramed(port, first, timestampMs, count, data)
}

// Tick returns a tick as a frame. Its sequence number is that of the next message.
func (j *Journal) Tick(timestampMs int64) ([]byte, error) {
	return frame.WriteFramed(frame.TickPort, j.next, timestampMs, 0, nil)
}

// Visit returns a visit as a frame, and the visit's id. The visit gets a sequence number like a message.
func (j *Journal) Visit(name string, metadata []byte, timestampMs int64) (data []byte, id uint64, err error) {
	id = j.next
	value, err := proto.Marshal(&pb.Visit{Id: id, Name: name, Metadata: metadata})
	if err == nil {
		data, err = j.Write(frame.VisitPort, frame.Plain, false, []Arrival{{Value: value, TimestampMs: timestampMs}})
	}
	return data, id, err
}

// Message is an output message of the application.
type Message struct {
	Port     uint16
	Sequence uint64 // sequence number of the source message from which it was made, or of the tick
	Key      []byte
	Headers  []byte // encoded as in a frame
	Value    []byte
}

// Messages reads the output frames of the application.
func Messages(frames [][]byte) (messages []Message, err error) {
	for _, data := range frames {
		var f frame.Frame
		if _, err := f.Read(data); err != nil {
			return nil, fmt.Errorf("a frame of the output: %w", err)
		}
		values := f.Values
		for i := range f.Count {
			length := f.Lengths.At(i)
			made := Message{Port: f.Port, Sequence: f.SequenceOf(i), Value: values[:length:length]}
			values = values[length:]
			if f.Flags&frame.FlagKeys != 0 {
				made.Key = f.Keys[f.KeyIndexes.At(i)]
			}
			if f.Flags&frame.FlagHeaders != 0 {
				made.Headers = f.Headers[i]
			}
			messages = append(messages, made)
		}
	}
	return messages, nil
}

// Batch returns how many of the frames can be in the next micro-batch. Two consecutive ticks cannot be in one
// micro-batch. They have the same sequence number, so windows of a later level would process both ticks before the
// results that the first tick causes.
func Batch(frames [][]byte) int {
	for i := 1; i < len(frames); i++ {
		if isTick(frames[i-1]) && isTick(frames[i]) {
			return i
		}
	}
	return len(frames)
}

func isTick(data []byte) bool {
	span, _, err := frame.ReadSpan(data)
	return err == nil && span.Port == frame.TickPort
}

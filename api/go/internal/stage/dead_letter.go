package stage

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/shown"
	"wallarooapi/internal/trace"
	pb "wallarooapi/internal/workerpb"
)

const (
	previewCharacters = 200
	previewBytes      = 4 * previewCharacters
)

func userFailure(n *node, recovered any) error {
	reason, stack := trace.Panic(recovered)
	return newFailure("C501", n.name+": "+reason, stack)
}

// rescue is deferred around user code that processes a message. If user code panics, the message becomes a dead
// letter.
func (n *node) rescue(input any) {
	if r := recover(); r != nil {
		reason, stack := trace.Panic(r)
		n.bury(codeOf(r), input, reason, stack)
	}
}

// kept serializes a message for a dead letter. For a protobuf message it uses the form that all languages can read.
func kept(input any) (data []byte, encoding byte, err error) {
	encoder := codec.NewEncoder()
	if message, ok := input.(proto.Message); ok && encoder.Encoding() == codec.Native {
		data, err = codec.AppendMessage(nil, message)
		return data, codec.Plain, err
	}
	data, err = encoder.Append(nil, input)
	return data, encoder.Encoding(), err
}

// bury makes a dead letter of a message that is available as an object.
func (n *node) bury(code string, input any, reason, stack string) {
	n.buryShown(code, input, preview(input), reason, stack)
}

func (n *node) buryShown(code string, input any, shown, reason, stack string) {
	letter := &pb.DeadLetter{Code: code, Error: reason, Traceback: stack, Preview: shown}
	if bytes, encoding, err := kept(input); err == nil && n.fits(bytes) {
		letter.Input, letter.Encoding = bytes, uint32(encoding)
	}
	n.file(letter)
}

// buryBytes makes a dead letter of a message that is available only as bytes.
func (n *node) buryBytes(code string, input []byte, encoding byte, reason, stack string) {
	letter := &pb.DeadLetter{Code: code, Error: reason, Traceback: stack, Preview: previewOf(input)}
	if n.fits(input) {
		letter.Input, letter.Encoding = input, uint32(encoding)
	}
	n.file(letter)
}

// fits reports whether a dead letter has room for an input in addition to the key.
func (n *node) fits(input []byte) bool { return len(input)+len(n.x.keyed.key) <= maxValueBytes }

func (n *node) file(letter *pb.DeadLetter) {
	x := n.x
	n.dead++
	letter.Path, letter.Step = n.path, n.name
	letter.Sequence, letter.Port, letter.TimestampMs = x.sequence, uint32(x.fromPort), x.timestamp
	if n.stateful != nil && !x.keyed.hasNoKey {
		letter.Key, letter.HasKey = x.keyed.key, true
	}
	value, err := proto.Marshal(letter)
	if err != nil {
		// Only text that is not valid UTF-8 can fail here. Error texts of user code may be such text.
		letter.Preview, letter.Error, letter.Traceback = valid(letter.Preview), valid(letter.Error), valid(letter.Traceback)
		if value, err = proto.Marshal(letter); err != nil {
			x.err = &Failure{Code: "I901", Reason: err.Error()}
			return
		}
	}
	x.dead.add(value)
}

func valid(text string) string { return string([]rune(text)) }

// preview formats a message for display in a dead letter.
func preview(value any) (text string) {
	switch v := value.(type) {
	case []byte:
		return previewOf(v)
	case string:
		return previewOf([]byte(v[:min(len(v), previewBytes)]))
	case *string:
		if v != nil {
			return preview(*v)
		}
	}
	if shown.HasAddresses(reflect.TypeOf(value)) {
		return diagnostic.Cut(string(shown.JSON(value)), previewCharacters)
	}
	return diagnostic.Cut(valid(fmt.Sprintf("%+v", value)), previewCharacters)
}

// skippedPreview is preview for a message that must not be processed. It calls no method of the program.
func skippedPreview(value any) string {
	if t := reflect.TypeOf(value); codec.NeedsNoCode(t) && !shown.HasAddresses(t) {
		return preview(value)
	}
	return diagnostic.Cut(string(shown.Plain(value)), previewCharacters)
}

// previewOf formats bytes for display: as a text if they are valid UTF-8, and otherwise in hexadecimal digits.
func previewOf(input []byte) string {
	start := input[:min(len(input), previewBytes)]
	if len(start) < len(input) {
		for cut := 0; cut < utf8.UTFMax && !utf8.Valid(start); cut++ {
			start = start[:len(start)-1]
		}
	}
	text := string(start)
	if !utf8.ValidString(text) || hasControls(text) {
		text = hex.EncodeToString(input[:min(len(input), previewCharacters/2)])
	}
	if len(start) < len(input) {
		text += "…"
	}
	return diagnostic.Cut(text, previewCharacters)
}

func hasControls(text string) bool {
	for _, r := range text {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return true
		}
	}
	return false
}

// writer collects messages for one port and bucket and emits them as frames.
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

// add adds the bytes of the message in flight.
func (w *writer) add(value []byte) { w.extend(append(w.builder.Buffer(), value...)) }

// extend adds the message in flight, after its value has been appended to the builder's buffer.
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

// abandon discards a value that the encoder has written. The next value needs a new frame, because the gob stream of
// this frame now has a gap.
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

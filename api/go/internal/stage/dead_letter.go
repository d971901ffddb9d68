package stage

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/shown"
	"wallarooapi/internal/trace"
	pb "wallarooapi/internal/workerpb"
)

const (
	previewCharacters = 200
	previewBytes      = 4 * previewCharacters
)

// caughtIn is deferred around user code that processes no message. If it panics, caughtIn sets err. name is that of the
// source or step.
func caughtIn(name string, err *error) {
	if r := recover(); r != nil {
		reason, stack := trace.Panic(r)
		*err = newFailure("C501", name+": "+reason, stack)
	}
}

// caught is deferred around user code that changes a state. If it panics, caught sets fault, and the caller makes the
// dead letter after it has restored the state.
func caught(fault **Failure) {
	if r := recover(); r != nil {
		reason, stack := trace.Panic(r)
		*fault = newFailure(codeOf(r), reason, stack)
	}
}

// rescue is deferred around user code that processes a message. If user code panics, the message becomes a dead
// letter.
func (n *node) rescue(input any) {
	if r := recover(); r != nil {
		reason, stack := trace.Panic(r)
		n.bury(codeOf(r), input, reason, stack)
	}
}

// kept serializes a message for a dead letter. A protobuf message gets the bytes that all languages can read.
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

// buryShown makes a dead letter as bury does, but shows the message as the text `shown`.
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

// file completes a dead letter and emits it.
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

// preview formats a message for display in a dead letter. The text contains no addresses.
func preview(value any) string {
	switch v := value.(type) {
	case []byte:
		return previewOf(v)
	case proto.Message: // its String differs from build to build
	case error, fmt.Stringer:
		return diagnostic.Cut(valid(fmt.Sprint(v)), previewCharacters)
	}
	if v := reflect.Indirect(reflect.ValueOf(value)); v.Kind() == reflect.String {
		return previewOf([]byte(v.String()[:min(v.Len(), previewBytes)]))
	}
	return diagnostic.Cut(string(shown.JSON(value)), previewCharacters)
}

// skippedPreview is preview for a message that must not be processed. It calls no method of the program.
func skippedPreview(value any) string {
	if codec.NeedsNoCode(reflect.TypeOf(value)) {
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
	isControl := func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, isControl) {
		text = hex.EncodeToString(input[:min(len(input), previewCharacters/2)])
	}
	if len(start) < len(input) {
		text += "…"
	}
	return diagnostic.Cut(text, previewCharacters)
}

package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"reflect"

	"wallarooapi/internal/known"
)

// maxDescriptions limits how many gob streams are kept between frames, one for each type.
const maxDescriptions = 256

// gobEncoder writes values of any type with encoding/gob. Each type has a gob stream, in which gob describes the type
// once, before the first value. But a frame must be readable alone. So gobEncoder repeats the description in each
// frame, before the first value of the type. The stream continues in the next frame, unless values of the type may
// describe further types.
type gobEncoder struct {
	streams map[reflect.Type]*encodeStream // streams that can continue
	inFrame map[reflect.Type]uint64        // number of each type described in this frame
	count   uint64                         // types described in this frame

	described int // bytes of type descriptions
}

type encodeStream struct {
	isClosed  bool   // values of the type describe no further types
	described []byte // type descriptions before the first value of a closed stream
	buffer    bytes.Buffer
	encoder   *gob.Encoder
}

func (g *gobEncoder) reset() {
	for t := range g.inFrame {
		if stream := g.streams[t]; stream != nil && !stream.isClosed || len(g.streams) > maxDescriptions {
			delete(g.streams, t)
		}
	}
	clear(g.inFrame)
	g.count = 0
}

func (g *gobEncoder) append(out []byte, value any) ([]byte, error) {
	if value == nil {
		return out, &Error{Type: "nil", Reason: "nothing can stand for it"}
	}
	t, pointer := reflect.TypeOf(value), byte(0)
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), 1
	}
	number, open := g.inFrame[t]
	stream, err := g.stream(t, value)
	if err != nil {
		return out, err
	}
	isNew := stream.buffer.Cap() == 0
	stream.buffer.Reset()
	if err := stream.encoder.Encode(value); err != nil {
		delete(g.streams, t)
		delete(g.inFrame, t)
		return out, &Error{Type: fmt.Sprintf("%T", value), Reason: err.Error()}
	}
	written := stream.buffer.Bytes()
	if isNew && stream.isClosed {
		stream.described, written = splitLast(written)
		stream.described = bytes.Clone(stream.described)
	}
	if open {
		out = binary.AppendUvarint(append(out, tagGobNext+pointer), number)
		return append(out, written...), nil
	}
	g.inFrame[t] = g.count
	g.count++
	tag := byte(tagGobFirst)
	if stream.isClosed {
		tag = tagGobWhole
	}
	name := known.Name(t)
	out = append(binary.AppendUvarint(append(out, tag+pointer), uint64(len(name))), name...)
	if stream.isClosed {
		out = append(binary.AppendUvarint(out, uint64(len(stream.described))), stream.described...)
		g.described += len(name) + len(stream.described)
	}
	return append(out, written...), nil
}

// stream returns the gob stream of a type. It returns an error if values of the type cannot be serialized, or if
// another process could not read them back.
func (g *gobEncoder) stream(t reflect.Type, value any) (*encodeStream, error) {
	if stream := g.streams[t]; stream != nil {
		return stream, nil
	}
	if err := CheckType(t); err != nil {
		return nil, &Error{Type: fmt.Sprintf("%T", value), Reason: err.Error()}
	}
	if !known.Has(t) {
		return nil, unfound(t, value)
	}
	if g.streams == nil {
		g.streams, g.inFrame = map[reflect.Type]*encodeStream{}, map[reflect.Type]uint64{}
	}
	stream := &encodeStream{isClosed: isClosed(t)}
	stream.encoder = gob.NewEncoder(&stream.buffer)
	g.streams[t] = stream
	return stream, nil
}

// unfound returns the error for a value whose type another process would not find by its name.
func unfound(t reflect.Type, value any) *Error {
	err := &Error{Type: fmt.Sprintf("%T", value),
		Reason: "another process could not find the type by its name; wa.RegisterType makes it known"}
	if _, ok := known.Lookup(known.Name(t)); ok {
		err.Reason, err.Fix = "another type of the program has the same name, "+known.Name(t), "give one of the two types another name"
	}
	return err
}

// splitLast splits the bytes of a gob stream into the type descriptions and the value, which is the last gob message.
func splitLast(written []byte) (before, last []byte) {
	at, rest := 0, written
	for len(rest) > 0 {
		at = len(written) - len(rest)
		rest = rest[gobMessage(rest):]
	}
	return written[:at], written[at:]
}

// gobMessage returns the length of the gob message at the start of data, including its length prefix.
func gobMessage(data []byte) int {
	if first := data[0]; first < 0x80 {
		return 1 + int(first)
	}
	size := -int(int8(data[0])) // size of the length prefix
	length := 0
	for _, b := range data[1 : 1+size] {
		length = length<<8 | int(b)
	}
	return 1 + size + length
}

// gobDecoder reads bytes that gobEncoder wrote.
type gobDecoder struct {
	streams []*decodeStream          // streams of the types described in this frame
	known   map[string]*decodeStream // streams that continue over frames, by name and description
	passes  bool                     // does not call methods of the program to read a value (see Decoder.Pass)

	described int // bytes of type descriptions
}

type decodeStream struct {
	t       reflect.Type
	isOpen  bool // values may describe further types, and gob would miss these descriptions in a skipped value
	reader  bytes.Reader
	decoder *gob.Decoder
}

func (g *gobDecoder) reset() { g.streams = g.streams[:0] }

func (g *gobDecoder) decode(tag byte, data []byte) (any, error) {
	number, rest, err := uvarint(data)
	if err != nil {
		return nil, err
	}
	isPointer := tag == tagGobFirstPointer || tag == tagGobNextPointer || tag == tagGobWholePointer
	switch tag {
	case tagGobFirst, tagGobFirstPointer:
		name, described, err := cut(rest, number)
		if err != nil {
			return nil, err
		}
		stream, err := beginDecoding(string(name))
		if err != nil {
			return nil, err
		}
		stream.isOpen = true
		g.streams = append(g.streams, stream)
		return g.read(stream, described, isPointer)
	case tagGobWhole, tagGobWholePointer:
		return g.whole(data, isPointer)
	}
	if number >= uint64(len(g.streams)) {
		return nil, &Error{Type: "a serialized value", Reason: "its type was not described before it"}
	}
	return g.read(g.streams[number], rest, isPointer)
}

// read reads a value of a stream. During Decoder.Pass it skips a value if methods of the program are needed to read it.
func (g *gobDecoder) read(stream *decodeStream, data []byte, isPointer bool) (any, error) {
	if g.passes && !stream.isOpen && !ReadsWithoutCode(stream.t) {
		return nil, stream.pass(data)
	}
	return stream.decode(data, isPointer)
}

// whole reads a value with its type description. If the decoder knows the description from an earlier frame, it
// continues the stream of that type.
func (g *gobDecoder) whole(data []byte, isPointer bool) (any, error) {
	name, rest, err := cutName(data)
	if err != nil {
		return nil, err
	}
	size, rest, err := uvarint(rest)
	if err != nil {
		return nil, err
	}
	described, value, err := cut(rest, size)
	if err != nil {
		return nil, err
	}
	head := data[:len(data)-len(value)]
	g.described += len(name) + len(described)
	if stream := g.known[string(head)]; stream != nil {
		g.streams = append(g.streams, stream)
		return g.read(stream, value, isPointer)
	}
	stream, err := beginDecoding(name)
	if err != nil {
		return nil, err
	}
	g.streams = append(g.streams, stream)
	message, err := g.read(stream, append(bytes.Clone(described), value...), isPointer)
	if err != nil {
		return nil, err
	}
	if g.known == nil || len(g.known) >= maxDescriptions {
		g.known = map[string]*decodeStream{}
	}
	g.known[string(head)] = stream
	return message, nil
}

func uvarint(data []byte) (number uint64, rest []byte, err error) {
	number, size := binary.Uvarint(data)
	if size <= 0 {
		return 0, nil, errCut
	}
	return number, data[size:], nil
}

func cut(data []byte, size uint64) (piece, rest []byte, err error) {
	if size > uint64(len(data)) {
		return nil, nil, errCut
	}
	return data[:size], data[size:], nil
}

var errCut = &Error{Type: "a serialized value", Reason: "it is cut"}

// beginDecoding begins the stream of a type, given by its name in package known.
func beginDecoding(name string) (*decodeStream, error) {
	t, ok := known.Lookup(name)
	if !ok {
		return nil, &Error{Type: name, Reason: "this program does not know the type; wa.RegisterType makes it known"}
	}
	stream := &decodeStream{t: t}
	stream.decoder = gob.NewDecoder(&stream.reader)
	return stream, nil
}

func (d *decodeStream) decode(data []byte, isPointer bool) (any, error) {
	d.reader.Reset(data)
	value := reflect.New(d.t)
	if err := d.decoder.DecodeValue(value); err != nil {
		return nil, &Error{Type: d.t.String(), Reason: err.Error()}
	}
	if isPointer {
		return value.Interface(), nil
	}
	return value.Elem().Interface(), nil
}

// pass skips a value, and learns the types that it describes.
func (d *decodeStream) pass(data []byte) error {
	d.reader.Reset(data)
	return d.decoder.DecodeValue(reflect.Value{})
}

package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"reflect"

	"wallarooapi/internal/known"
)

// gobEncoder writes values of any type with encoding/gob. gob describes a type before its first value; each frame
// has one gob stream per type, so that the description stands in it once.
type gobEncoder struct {
	streams map[reflect.Type]*encodeStream
	count   uint64 // of streams begun in this frame
}

type encodeStream struct {
	number  uint64
	buffer  bytes.Buffer
	encoder *gob.Encoder
}

func (g *gobEncoder) reset() {
	clear(g.streams)
	g.count = 0
}

func (g *gobEncoder) append(out []byte, value any) ([]byte, error) {
	if value == nil {
		return out, &Error{Type: "nil", Reason: "nothing can stand for it"}
	}
	t, tag := reflect.TypeOf(value), byte(tagGobFirst)
	if t.Kind() == reflect.Pointer {
		t, tag = t.Elem(), tagGobFirstPointer
	}
	stream, open := g.streams[t]
	if !open {
		var err error
		if stream, err = g.begin(t, value); err != nil {
			return out, err
		}
	}
	stream.buffer.Reset()
	if err := stream.encoder.Encode(value); err != nil {
		delete(g.streams, t)
		return out, &Error{Type: fmt.Sprintf("%T", value), Reason: err.Error()}
	}
	if open {
		out = binary.AppendUvarint(append(out, tag+tagGobNext-tagGobFirst), stream.number)
	} else {
		name := known.Name(t)
		out = append(binary.AppendUvarint(append(out, tag), uint64(len(name))), name...)
		stream.number = g.count
		g.count++
		g.streams[t] = stream
	}
	return append(out, stream.buffer.Bytes()...), nil
}

// begin opens a stream for a type of which values can be read again.
func (g *gobEncoder) begin(t reflect.Type, value any) (*encodeStream, error) {
	if err := CheckType(t); err != nil {
		return nil, &Error{Type: fmt.Sprintf("%T", value), Reason: err.Error()}
	}
	if registered, ok := known.Lookup(known.Name(t)); !ok || registered != t {
		return nil, &Error{Type: fmt.Sprintf("%T", value), Reason: "another process could not find the type by its name; " +
			"wa.RegisterType makes it known"}
	}
	if g.streams == nil {
		g.streams = map[reflect.Type]*encodeStream{}
	}
	stream := &encodeStream{}
	stream.encoder = gob.NewEncoder(&stream.buffer)
	return stream, nil
}

// gobDecoder reads what gobEncoder wrote.
type gobDecoder struct {
	streams []*decodeStream
}

type decodeStream struct {
	t       reflect.Type
	reader  bytes.Reader
	decoder *gob.Decoder
}

func (g *gobDecoder) reset() { g.streams = g.streams[:0] }

func (g *gobDecoder) decode(tag byte, data []byte) (any, error) {
	number, size := binary.Uvarint(data)
	if size <= 0 {
		return nil, &Error{Type: "a serialized value", Reason: "it is cut"}
	}
	data = data[size:]
	if tag == tagGobFirst || tag == tagGobFirstPointer {
		if number > uint64(len(data)) {
			return nil, &Error{Type: "a serialized value", Reason: "it is cut"}
		}
		name := string(data[:number])
		t, ok := known.Lookup(name)
		if !ok {
			return nil, &Error{Type: name, Reason: "this program does not know the type; wa.RegisterType makes it known"}
		}
		data, number = data[number:], uint64(len(g.streams))
		stream := &decodeStream{t: t}
		stream.decoder = gob.NewDecoder(&stream.reader)
		g.streams = append(g.streams, stream)
	}
	if number >= uint64(len(g.streams)) {
		return nil, &Error{Type: "a serialized value", Reason: "its type was not described before it"}
	}
	stream := g.streams[number]
	stream.reader.Reset(data)
	value := reflect.New(stream.t)
	if err := stream.decoder.DecodeValue(value); err != nil {
		return nil, &Error{Type: stream.t.String(), Reason: err.Error()}
	}
	if tag == tagGobFirstPointer || tag == tagGobNextPointer {
		return value.Interface(), nil
	}
	return value.Elem().Interface(), nil
}

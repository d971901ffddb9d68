// Package frame reads and writes frames: byte strings that contain many messages for one port, with their keys, times
// and numbers in columns. SPECIFICATION.md, section 2, describes the layout.
package frame

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// HeaderBytes is the length of a frame's header, MaxBytes the maximum length of a whole frame, and MaxBodyBytes that
// of its body.
const (
	HeaderBytes  = 40
	MaxBytes     = 64 * 1024 * 1024
	MaxBodyBytes = MaxBytes - HeaderBytes
)

// These flags state which columns a frame has.
const (
	FlagKeys = 1 << iota
	FlagSequences
	FlagTimestamps
	FlagHeaders
	FlagAbsent
	allFlags = 1<<iota - 1
)

// These are the encodings of values that this package knows, as stored in the header of a frame. With Plain, the
// lengths of the values are in a column. With Framed, the values are bytes from the network with their framing.
const (
	Plain  = 0
	Framed = 1
)

// DeadLetterPort is the port of frames whose values are dead letters. As the port of a source in a dead letter, it
// means that the source is unknown.
const DeadLetterPort = 65535

// TickPort is the port of ticks: frames without messages that carry a time.
const TickPort = 65534

// VisitPort is the port of visits, which call user code for every key of a state. The only value of such a frame is a
// Visit of the worker protocol.
const VisitPort = 65533

// MaxPorts is the maximum number of ports of an application. Greater port numbers are for control frames and dead
// letters.
const MaxPorts = VisitPort

// IsControl reports whether frames of a port are ticks or visits, which go to all buckets of a stage.
func IsControl(port uint16) bool { return port == TickPort || port == VisitPort }

const magic = "WFR1"

// Error describes how a frame is damaged. The code of such an error is W410.
type Error string

// Error returns the description.
func (e Error) Error() string { return string(e) }

func damaged(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// Header contains the fields in the first 40 bytes of a frame.
type Header struct {
	Flags       byte
	Encoding    byte
	Port        uint16
	Count       int
	BodyBytes   int
	Sequence    uint64
	TimestampMs int64
}

// Frame is a frame that has been read. Its slices refer to the bytes that were read.
type Frame struct {
	Header
	Keys       [][]byte // the distinct keys
	KeyIndexes Column   // position of each message's key in Keys
	sequences  Column
	timestamps Column
	Headers    [][]byte // encoded headers of each message
	absent     []byte
	Lengths    Column // lengths of the values; empty for framed values
	Values     []byte // all values, one after the other
}

// SequenceOf returns the sequence number of a message.
func (f *Frame) SequenceOf(i int) uint64 {
	if f.sequences.width == 0 {
		return f.Sequence + uint64(i)
	}
	return f.Sequence + f.sequences.At(i)
}

// TimestampOf returns the time of a message in milliseconds since 1970 UTC.
func (f *Frame) TimestampOf(i int) int64 {
	if f.timestamps.width == 0 {
		return f.TimestampMs
	}
	return f.TimestampMs + int64(f.timestamps.At(i))
}

// HasAbsent reports whether messages of the frame may lack a value, as a tombstone in Kafka does.
func (f *Frame) HasAbsent() bool { return f.Flags&FlagAbsent != 0 }

// IsAbsent reports whether a message has no value.
func (f *Frame) IsAbsent(i int) bool {
	return f.absent != nil && f.absent[i>>3]>>(i&7)&1 == 1
}

// readHeader reads the header at the start of data. It returns an error if data is shorter than the whole frame.
func readHeader(data []byte) (h Header, err error) {
	if len(data) < HeaderBytes {
		return h, damaged("%d bytes are left; a header has %d", len(data), HeaderBytes)
	}
	if string(data[:4]) != magic {
		return h, damaged("magic is %q; expected %q", data[:4], magic)
	}
	if reserved := binary.LittleEndian.Uint32(data[32:]); data[4]&^allFlags != 0 || reserved != 0 {
		return h, damaged("flags %d or reserved %d are not known", data[4], reserved)
	}
	size := binary.LittleEndian.Uint32(data[12:])
	if size > MaxBodyBytes {
		return h, damaged("the header announces %d bytes; at most %d are possible", size, MaxBodyBytes)
	}
	if int(size) > len(data)-HeaderBytes {
		return h, damaged("the frame has %d bytes; %d are left", HeaderBytes+int(size), len(data))
	}
	h = Header{
		Flags:       data[4],
		Encoding:    data[5],
		Port:        binary.LittleEndian.Uint16(data[6:]),
		Count:       int(binary.LittleEndian.Uint32(data[8:])),
		BodyBytes:   int(size),
		Sequence:    binary.LittleEndian.Uint64(data[16:]),
		TimestampMs: int64(binary.LittleEndian.Uint64(data[24:])),
	}
	return h, nil
}

// Read reads and verifies the frame at the start of data, and returns the bytes after the frame. It reuses the slices
// of f. After an error, f must not be used.
func (f *Frame) Read(data []byte) (rest []byte, err error) {
	header, err := readHeader(data)
	if err != nil {
		return nil, err
	}
	end := HeaderBytes + header.BodyBytes
	checksum := crc32.Update(crc32.ChecksumIEEE(data[:36]), crc32.IEEETable, data[HeaderBytes:end])
	if expected := binary.LittleEndian.Uint32(data[36:]); checksum != expected {
		return nil, damaged("checksum is %#010x; the header has %#010x", checksum, expected)
	}
	*f = Frame{Header: header, Keys: f.Keys[:0], Headers: f.Headers[:0]}
	body := body{data[HeaderBytes:end:end]}
	if err := f.readColumns(&body); err != nil {
		return nil, err
	}
	return data[end:], nil
}

func (f *Frame) readColumns(body *body) (err error) {
	if f.Flags&FlagKeys != 0 {
		if err := f.readKeys(body); err != nil {
			return err
		}
	}
	if f.Flags&FlagSequences != 0 {
		if f.sequences, err = body.column(f.Count); err != nil {
			return err
		}
	}
	if f.Flags&FlagTimestamps != 0 {
		if f.timestamps, err = body.column(f.Count); err != nil {
			return err
		}
	}
	if f.Flags&FlagHeaders != 0 {
		if f.Headers, err = body.pieces(f.Count, f.Headers); err != nil {
			return err
		}
	}
	if f.Flags&FlagAbsent != 0 {
		if f.absent, err = body.take(uint64(f.Count+7) / 8); err != nil {
			return err
		}
	}
	return f.readValues(body)
}

func (f *Frame) readKeys(body *body) error {
	raw, err := body.take(4)
	if err != nil {
		return err
	}
	count := int(binary.LittleEndian.Uint32(raw))
	if f.Keys, err = body.pieces(count, f.Keys); err != nil {
		return err
	}
	if f.KeyIndexes, err = body.column(f.Count); err != nil {
		return err
	}
	if top := f.KeyIndexes.Max(); f.Count > 0 && top >= uint64(count) {
		return damaged("a key index of %d; the frame has %d keys", top, count)
	}
	return nil
}

func (f *Frame) readValues(body *body) (err error) {
	if f.Encoding != Framed {
		if f.Lengths, err = body.column(f.Count); err != nil {
			return err
		}
		left := uint64(len(body.data))
		if total, ok := f.Lengths.sum(left); !ok || total != left {
			return damaged("the lengths of the values do not add up to the %d bytes left in the body", left)
		}
	}
	if f.Count == 0 && len(body.data) > 0 {
		return damaged("%d bytes of values for no message", len(body.data))
	}
	f.Values = body.data
	return nil
}

// body reads the sections of a frame's body one after the other. Reading beyond the end is an error.
type body struct{ data []byte }

func (b *body) take(size uint64) ([]byte, error) {
	if size > uint64(len(b.data)) {
		return nil, damaged("a section of %d bytes; %d are left in the body", size, len(b.data))
	}
	taken := b.data[:size:size]
	b.data = b.data[size:]
	return taken, nil
}

func (b *body) column(count int) (Column, error) {
	width, err := b.take(1)
	if err != nil {
		return Column{}, err
	}
	switch width[0] {
	case 1, 2, 4, 8:
	default:
		return Column{}, damaged("a column of width %d; expected 1, 2, 4 or 8", width[0])
	}
	data, err := b.take(uint64(count) * uint64(width[0]))
	return Column{int(width[0]), data}, err
}

// pieces reads a column of lengths, and then as many byte strings. It appends them to into.
func (b *body) pieces(count int, into [][]byte) ([][]byte, error) {
	lengths, err := b.column(count)
	if err != nil {
		return into, err
	}
	for i := 0; i < count; i++ {
		piece, err := b.take(lengths.At(i))
		if err != nil {
			return into, err
		}
		into = append(into, piece)
	}
	return into, nil
}

// skipKeys skips the keys of a frame and the column of key positions.
func (b *body) skipKeys(messages int) error {
	raw, err := b.take(4)
	if err != nil {
		return err
	}
	lengths, err := b.column(int(binary.LittleEndian.Uint32(raw)))
	if err != nil {
		return err
	}
	total, ok := lengths.sum(uint64(len(b.data)))
	if !ok {
		return damaged("the keys are longer than the %d bytes left in the body", len(b.data))
	}
	if _, err = b.take(total); err != nil {
		return err
	}
	_, err = b.column(messages)
	return err
}

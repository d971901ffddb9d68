package frame

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Builder makes frames. Set the exported fields. For each message, call the Use methods and then Add, AddAbsent or
// Extend. Frame returns the frame, and Reset prepares the next one. Either all messages have keys, or none of them.
type Builder struct {
	Port        uint16
	Encoding    byte
	TimestampMs int64

	keyLengths []uint32
	keyBytes   []byte
	keyIndexes []uint32
	sequences  []uint64
	timestamps []int64
	headers    []byte
	headEnds   []int // end of each message's headers; empty while no message has headers
	lengths    []uint32
	values     []byte
	absent     []int

	topKeyLength uint32
	topLength    uint32
}

// Count returns the number of messages.
func (b *Builder) Count() int { return len(b.lengths) }

// BodyBytes returns an upper bound for the length of the body, the frame without its header.
func (b *Builder) BodyBytes() int {
	return 64 + len(b.values) + len(b.keyBytes) + 4*(len(b.keyLengths)+len(b.keyIndexes)+len(b.lengths)) +
		8*(len(b.sequences)+len(b.timestamps)) + len(b.headers) + 4*len(b.headEnds) + len(b.absent)
}

// AddKey adds a key to the frame and returns its position for UseKey. The keys of a frame must be distinct.
func (b *Builder) AddKey(key []byte) uint32 {
	b.keyLengths = append(b.keyLengths, uint32(len(key)))
	b.topKeyLength = max(b.topKeyLength, uint32(len(key)))
	b.keyBytes = append(b.keyBytes, key...)
	return uint32(len(b.keyLengths) - 1)
}

// UseKey sets the key of the next message to the key at a position.
func (b *Builder) UseKey(position uint32) { b.keyIndexes = append(b.keyIndexes, position) }

// UseSequence sets the sequence number of the next message.
func (b *Builder) UseSequence(sequence uint64) { b.sequences = append(b.sequences, sequence) }

// UseTimestamp sets the time of the next message, in milliseconds since 1970 UTC.
func (b *Builder) UseTimestamp(timestampMs int64) { b.timestamps = append(b.timestamps, timestampMs) }

// UseHeader adds a header to the next message.
func (b *Builder) UseHeader(name string, value []byte) {
	for len(b.headEnds) < len(b.lengths) {
		b.headEnds = append(b.headEnds, len(b.headers))
	}
	b.headers = binary.LittleEndian.AppendUint16(b.headers, uint16(len(name)))
	b.headers = append(b.headers, name...)
	b.headers = binary.LittleEndian.AppendUint32(b.headers, uint32(len(value)))
	b.headers = append(b.headers, value...)
	if len(b.headEnds) > len(b.lengths) {
		b.headEnds[len(b.lengths)] = len(b.headers)
		return
	}
	b.headEnds = append(b.headEnds, len(b.headers))
}

// Buffer returns a buffer with the values of the messages so far. To add a message, append its value and call Extend.
func (b *Builder) Buffer() []byte { return b.values }

// Extend adds a message. Its value is the part of buffer after the previous values.
func (b *Builder) Extend(buffer []byte) {
	length := uint32(len(buffer) - len(b.values))
	b.lengths = append(b.lengths, length)
	b.topLength = max(b.topLength, length)
	b.values = buffer
}

// Add adds a message.
func (b *Builder) Add(value []byte) { b.Extend(append(b.values, value...)) }

// AddAbsent adds a message without a value.
func (b *Builder) AddAbsent() {
	b.absent = append(b.absent, len(b.lengths))
	b.lengths = append(b.lengths, 0)
}

// Reset removes the messages and keeps Port, Encoding and TimestampMs.
func (b *Builder) Reset() {
	*b = Builder{
		Port: b.Port, Encoding: b.Encoding, TimestampMs: b.TimestampMs,
		keyLengths: b.keyLengths[:0], keyBytes: b.keyBytes[:0], keyIndexes: b.keyIndexes[:0],
		sequences: b.sequences[:0], timestamps: b.timestamps[:0], headers: b.headers[:0], headEnds: b.headEnds[:0], lengths: b.lengths[:0], values: b.values[:0], absent: b.absent[:0],
	}
}

// Frame returns the frame. It returns an error if the body is longer than MaxBodyBytes.
func (b *Builder) Frame() ([]byte, error) {
	out := make([]byte, HeaderBytes, HeaderBytes+b.BodyBytes()+len(b.lengths)/8)
	flags, sequence, timestamp := byte(0), uint64(0), b.TimestampMs
	if len(b.keyLengths) > 0 {
		flags |= FlagKeys
		out = binary.LittleEndian.AppendUint32(out, uint32(len(b.keyLengths)))
		out = appendColumn(out, b.keyLengths, b.topKeyLength)
		out = append(out, b.keyBytes...)
		out = appendColumn(out, b.keyIndexes, uint32(len(b.keyLengths)-1))
	}
	if len(b.sequences) > 0 {
		flags |= FlagSequences
		out, sequence = b.appendSequences(out)
	}
	if len(b.timestamps) > 0 {
		flags |= FlagTimestamps
		out, timestamp = b.appendTimestamps(out)
	}
	if len(b.headEnds) > 0 {
		flags |= FlagHeaders
		out = b.appendHeaders(out)
	}
	if len(b.absent) > 0 {
		flags |= FlagAbsent
		out = b.appendAbsent(out)
	}
	out = append(appendColumn(out, b.lengths, b.topLength), b.values...)
	size := len(out) - HeaderBytes
	if size > MaxBodyBytes {
		return nil, damaged("the body has %d bytes; at most %d fit into a frame", size, MaxBodyBytes)
	}
	seal(out, Header{
		Flags: flags, Encoding: b.Encoding, Port: b.Port, Count: len(b.lengths), Sequence: sequence, TimestampMs: timestamp,
	})
	return out, nil
}

// appendSequences writes the column of sequence numbers and returns the smallest number. It replaces the numbers by
// their differences to the smallest, so it can run only once per frame.
func (b *Builder) appendSequences(out []byte) ([]byte, uint64) {
	least, top := b.sequences[0], b.sequences[0]
	for _, sequence := range b.sequences {
		least, top = min(least, sequence), max(top, sequence)
	}
	for i := range b.sequences {
		b.sequences[i] -= least
	}
	return appendColumn(out, b.sequences, top-least), least
}

// appendTimestamps writes the column of times and returns the earliest one. The column has differences to this time.
func (b *Builder) appendTimestamps(out []byte) ([]byte, int64) {
	least, top := slices.Min(b.timestamps), slices.Max(b.timestamps)
	differences := make([]uint64, len(b.timestamps))
	for i, timestamp := range b.timestamps {
		differences[i] = uint64(timestamp - least)
	}
	return appendColumn(out, differences, uint64(top-least)), least
}

func (b *Builder) appendHeaders(out []byte) []byte {
	lengths, top, start := make([]uint32, len(b.lengths)), uint32(0), 0
	for i, end := range b.headEnds {
		lengths[i] = uint32(end - start)
		top, start = max(top, lengths[i]), end
	}
	return append(appendColumn(out, lengths, top), b.headers...)
}

func (b *Builder) appendAbsent(out []byte) []byte {
	start := len(out)
	out = append(out, make([]byte, (len(b.lengths)+7)/8)...)
	for _, i := range b.absent {
		out[start+i>>3] |= 1 << (i & 7)
	}
	return out
}

// WriteFramed writes a frame of messages as they arrive over the network: values contains each message with the header
// of its framing.
func WriteFramed(port uint16, sequence uint64, timestampMs int64, count int, values []byte) ([]byte, error) {
	if len(values) > MaxBodyBytes {
		return nil, damaged("the body has %d bytes; at most %d fit into a frame", len(values), MaxBodyBytes)
	}
	out := append(make([]byte, HeaderBytes, HeaderBytes+len(values)), values...)
	seal(out, Header{Encoding: Framed, Port: port, Count: count, Sequence: sequence, TimestampMs: timestampMs})
	return out, nil
}

// seal writes the header of a frame, with its checksum, after the body has been written.
func seal(out []byte, h Header) {
	copy(out, magic)
	out[4], out[5] = h.Flags, h.Encoding
	binary.LittleEndian.PutUint16(out[6:], h.Port)
	binary.LittleEndian.PutUint32(out[8:], uint32(h.Count))
	binary.LittleEndian.PutUint32(out[12:], uint32(len(out)-HeaderBytes))
	binary.LittleEndian.PutUint64(out[16:], h.Sequence)
	binary.LittleEndian.PutUint64(out[24:], uint64(h.TimestampMs))
	checksum := crc32.Update(crc32.ChecksumIEEE(out[:36]), crc32.IEEETable, out[HeaderBytes:])
	binary.LittleEndian.PutUint32(out[36:], checksum)
}

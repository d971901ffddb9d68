package topology

import (
	"encoding/binary"
	"fmt"
)

// StreamTimeBytes is the size of the time that precedes a payload in a frame between a connector and an application.
const StreamTimeBytes = 8

// StreamFrame puts length and time before a payload, both little-endian; it has no time of its own, 0. Nil stays nil.
func StreamFrame(payload []byte) []byte {
	if payload == nil {
		return nil
	}
	frame := make([]byte, 4+StreamTimeBytes, 4+StreamTimeBytes+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(StreamTimeBytes+len(payload)))
	return append(frame, payload...)
}

// StreamTooShort returns the error of a frame that has no room for its time.
func StreamTooShort(size int) error {
	return fmt.Errorf("a frame has %d bytes; at least %d are a time", size, StreamTimeBytes)
}

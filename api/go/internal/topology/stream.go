package topology

import (
	"encoding/binary"
	"fmt"
)

// StreamTimeBytes is the size of the time before a payload in a frame between a connector and an application.
const StreamTimeBytes = 8

// StreamFrame puts the length and a time of 0 before a payload, both little-endian. For nil it returns nil.
func StreamFrame(payload []byte) []byte {
	if payload == nil {
		return nil
	}
	frame := make([]byte, 4+StreamTimeBytes, 4+StreamTimeBytes+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(StreamTimeBytes+len(payload)))
	return append(frame, payload...)
}

// StreamTooShort returns the error for a frame that is too short for its time.
func StreamTooShort(size int) error {
	return fmt.Errorf("a frame has %d bytes; at least %d are a time", size, StreamTimeBytes)
}

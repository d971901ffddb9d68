package topology

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
)

const maxHeaderBytes = 64

// Framing describes how a byte stream is cut into messages: by line ends, by a length before each message in a format
// that the runtime knows, or by the worker.
type Framing struct {
	Kind        string
	HeaderBytes int
}

// WorkerFraming is the kind of framing that the runtime does not know: only the user's decoder finds the messages.
const WorkerFraming = "worker"

// NewlineFraming is the kind of framing whose messages are lines.
const NewlineFraming = "newline"

func (f Framing) tree() Object {
	if f.Kind != WorkerFraming {
		return Object{{"kind", f.Kind}}
	}
	return Object{{"kind", f.Kind}, {"header_bytes", f.HeaderBytes}}
}

// Length returns the payload length in a header. The framing must have a kind with a length.
func (f Framing) Length(header []byte) uint64 {
	switch f.Kind {
	case "u8":
		return uint64(header[0])
	case "u16be":
		return uint64(binary.BigEndian.Uint16(header))
	case "u16le":
		return uint64(binary.LittleEndian.Uint16(header))
	case "u32be":
		return uint64(binary.BigEndian.Uint32(header))
	case "u32le":
		return uint64(binary.LittleEndian.Uint32(header))
	case "u64be":
		return binary.BigEndian.Uint64(header)
	}
	return binary.LittleEndian.Uint64(header)
}

// ProbeFraming finds out whether the runtime knows the framing of a decoder. It calls the decoder's payloadLength with
// many headers, of 1 to 64 bytes, and compares the results with those of each known framing.
func ProbeFraming(headerBytes int, payloadLength func([]byte) uint64) Framing {
	for _, kind := range kinds(headerBytes) {
		framing := Framing{Kind: kind, HeaderBytes: headerBytes}
		if framing.explains(payloadLength) {
			return framing
		}
	}
	return Framing{Kind: WorkerFraming, HeaderBytes: headerBytes}
}

// kinds returns the kinds of framing whose header has this length, the preferred kind first.
func kinds(headerBytes int) []string {
	switch headerBytes {
	case 1:
		return []string{"u8"}
	case 2, 4, 8:
		width := "u" + strconv.Itoa(8*headerBytes)
		return []string{width + "be", width + "le"}
	}
	return nil
}

// explains reports whether payloadLength returns the lengths of this framing for all headers of probes. If it panics,
// the result is false.
func (f Framing) explains(payloadLength func([]byte) uint64) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	for _, header := range probes(f.HeaderBytes) {
		want := f.Length(header)
		if payloadLength(header) != want {
			return false
		}
	}
	return true
}

// probes returns headers of this width, for which different framings have different payload lengths.
func probes(width int) [][]byte {
	headers := [][]byte{make([]byte, width), make([]byte, width)}
	for i := range headers[1] {
		headers[1][i] = 0xFF
	}
	for i := 0; i < width; i++ {
		for _, value := range []byte{0x01, 0x80} {
			header := make([]byte, width)
			header[i] = value
			headers = append(headers, header)
		}
	}
	for j := 0; j < 64; j++ {
		digest := sha256.Sum256(fmt.Appendf(nil, "probe %d", j))
		headers = append(headers, digest[:width])
	}
	return headers
}

// HeaderLengthIsUsable reports whether a header length is within the limits of the document.
func HeaderLengthIsUsable(length uint64) bool { return length >= 1 && length <= maxHeaderBytes }

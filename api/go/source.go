package wallarooapi

// Decoder makes a message from bytes.
type Decoder interface {
	// Decode returns the message for a payload. It may keep b but must not change it. If it returns nil, the message is
	// discarded (as in Wallaroo 0.5.1). If it panics, the payload becomes a dead letter (C505).
	Decode(b []byte) interface{}
}

// LineDecoder makes messages from the lines of a TCP stream, e.g. JSON lines. Decode gets a line without its line end
// (LF or CR LF). If the last line has no line end, the end of the connection ends it. Empty lines are messages, too. A
// line of more than 16 MiB closes its connection (R606).
type LineDecoder interface {
	Decoder
	// DecodesLines is not called. It marks the decoder as a decoder of lines.
	DecodesLines()
}

// FramedDecoder cuts a TCP stream into messages. Each message is a header of fixed length and a payload. The decoder
// of MakeTCPSourceConfig must be a FramedDecoder or a LineDecoder (T223).
type FramedDecoder interface {
	Decoder
	// HeaderLength returns the number of bytes before each payload. It must be 1 to 64 (T207).
	HeaderLength() uint64
	// PayloadLength returns the number of bytes of the payload that follows the header b. The result must depend on b
	// alone. The runtime also calls it with made-up headers to find out the framing. If the result for a message
	// contradicts this framing, the message becomes a dead letter (C506).
	PayloadLength(b []byte) uint64
}

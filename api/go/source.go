package wallarooapi

// Decoder makes a message from bytes.
type Decoder interface {
	// Decode gets exactly the payload. The bytes may be kept but not changed. Nil discards the message (Wallaroo 0.5.1); a panic
	// makes the payload a dead letter (C505).
	Decode(b []byte) interface{}
}

// LineDecoder makes messages of the lines of a TCP stream, e.g. those of nc or JSON lines. Decode gets a line without its end, LF or CR LF;
// a last line without one ends with the connection. Empty lines are messages, too. A line may have 16 MiB; a longer one closes its
// connection (R606).
type LineDecoder interface {
	Decoder
	// DecodesLines does nothing; it states that the messages are lines.
	DecodesLines()
}

// FramedDecoder cuts a TCP stream into messages: each is a header of fixed length and a payload. MakeTCPSourceConfig needs one
// or a LineDecoder (T223).
type FramedDecoder interface {
	Decoder
	// HeaderLength returns the number of bytes before each payload, 1 to 64 (T207).
	HeaderLength() uint64
	// PayloadLength gets exactly the header and returns the length of the payload after it. It must depend
	// on the header alone; it is also called with made-up headers to find out the framing. The
	// length is in bytes; another one than that framing has makes the message a dead letter (C506).
	PayloadLength(b []byte) uint64
}

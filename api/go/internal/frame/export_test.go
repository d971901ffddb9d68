package frame

// Seal returns a frame with a body, which may be damaged, and a header with the right length and checksum.
func Seal(flags, encoding byte, count int, body []byte) []byte {
	out := append(make([]byte, HeaderBytes), body...)
	seal(out, Header{Flags: flags, Encoding: encoding, Count: count})
	return out
}

package frame

// Seal writes a header with the right length and checksum before any body.
func Seal(flags, encoding byte, count int, body []byte) []byte {
	out := append(make([]byte, HeaderBytes), body...)
	seal(out, Header{Flags: flags, Encoding: encoding, Count: count})
	return out
}

package wallarooapi

// Encoder turns messages into the bytes that a sink sends.
type Encoder interface {
	// Encode returns the bytes of one message, including framing. If it returns nil, nothing is sent. A panic makes
	// the message a dead letter (C501).
	Encode(d interface{}) []byte
}

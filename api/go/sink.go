package wallarooapi

// Encoder makes the bytes that a sink sends.
type Encoder interface {
	// Encode returns the bytes of one message, framing included. Nil sends nothing. A panic makes the message a dead letter (C501).
	Encode(d interface{}) []byte
}

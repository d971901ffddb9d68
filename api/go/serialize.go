package wallarooapi

// Serialize and Deserialize turn messages and states into bytes and back, if a program sets them. A message is
// serialized when it moves to another partition. Set both before the declaration of the application ends, and do not
// change them afterwards. Serialize must not return nil for a type that it supports: nil or a panic makes the message
// a dead letter (C504), or reports C511 for a state. Deserialize must not change the bytes of its argument.
//
// By default, the basic types, []byte and *string are written as they are, and other types with encoding/gob. The
// default knows types declared in the program's main package, types of states, and types passed to RegisterType.
//
// Source: Wallaroo 0.4 and 0.5, which had no default serialization.
var (
	Serialize   func(data interface{}) []byte
	Deserialize func(b []byte) interface{}
)

package wallarooapi

// Serialize and Deserialize replace the default conversion of messages and states into bytes and back. A message is
// serialized when it moves to another partition. Set both variables before the declaration of the application ends, and
// do not change them afterwards. Serialize must not return nil for a type that it supports. If it returns nil or
// panics, a message becomes a dead letter (C504), and a state is reported as C511. Deserialize must not change the
// bytes of its argument.
//
// The default writes the basic types, []byte and *string as they are, and other types with encoding/gob. It can read
// the types of states, types declared in the program's main package, and types passed to RegisterType.
//
// Source: Wallaroo 0.4 and 0.5, which had no default serialization.
var (
	Serialize   func(data interface{}) []byte
	Deserialize func(b []byte) interface{}
)

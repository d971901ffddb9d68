package wallarooapi

// Serialize and Deserialize, when a program sets them, turn messages (where they move to another
// partition) and states into bytes and back. Set both, before the application is declared to the end, and leave them
// alone afterwards. Serialize must not return nil for a type that it covers; nil or a panic makes the message a dead
// letter (C504; of a state C511). Deserialize must not change the bytes that it gets.
//
// Without them the basic types, []byte and *string are written as they are, and other types with encoding/gob:
// types declared in the program's main package, types of states, and types passed to RegisterType are known.
//
// Source: Wallaroo 0.4 and 0.5, which had no default.
var (
	Serialize   func(data interface{}) []byte
	Deserialize func(b []byte) interface{}
)

package wallarooapi

import (
	"reflect"

	"wallarooapi/internal/known"
)

// RegisterType registers the type of a value with the built-in serialization. Then another worker process of the same
// program can read serialized messages of this type. `wallaroo build` registers the types of the main package. For a
// message type of another package, call RegisterType from an init function, with a value of the type or a pointer to
// one. Without this call, a message of the type becomes a dead letter (C504) when it has to move to another process.
func RegisterType(value interface{}) {
	if value != nil {
		known.Register(reflect.TypeOf(value))
	}
}

package wallarooapi

import (
	"reflect"

	"wallarooapi/internal/known"
)

// RegisterType makes the type of a value known to the built-in serialization, so that another process of the same
// program can read it. Types of the main package are registered by `wallaroo build`; a message type of
// another package needs a call from an init function, with a value or a pointer of the type; without it such a message that has to
// move is a dead letter (C504).
func RegisterType(value interface{}) {
	if value != nil {
		known.Register(reflect.TypeOf(value))
	}
}

package known

import (
	"reflect"
	"sync/atomic"
)

// Form is the codec that a program has registered for a type with stream.Register. It is used for pointers to the type,
// too.
type Form struct {
	Encode func(value any) ([]byte, error)
	Decode func(data []byte, behindPointer bool) (any, error)
	Shape  map[string]string // description of the type (see codec.Shape); nil if the codec is code of the program

	Unreadable error // why Decode cannot read the bytes from Encode; nil if it can
	Incomplete error // which field Encode silently leaves out; nil if there is none
}

// forms holds all registered forms, or nil. Each change replaces the whole map, so that readers need no lock.
var forms atomic.Pointer[map[reflect.Type]Form]

// RegisterForm sets the codec of a type, and registers the type.
func RegisterForm(t reflect.Type, form Form) {
	Register(t)
	next := map[reflect.Type]Form{t: form}
	if before := forms.Load(); before != nil {
		for other, its := range *before {
			if other != t {
				next[other] = its
			}
		}
	}
	forms.Store(&next)
}

// FormOf returns the codec that the program has registered for a type. If there is none, ok is false.
func FormOf(t reflect.Type) (form Form, ok bool) {
	all := forms.Load()
	if all == nil {
		return Form{}, false
	}
	form, ok = (*all)[t]
	return form, ok
}

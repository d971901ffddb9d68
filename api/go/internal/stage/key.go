package stage

import "wallarooapi/internal/trace"

// rekey gives a message the key of a key_by, or the empty key of a collect, for everything downstream.
func (n *node) rekey(value any) {
	var key []byte
	if n.keyOf != nil {
		var ok bool
		if key, ok = n.askKey(n.keyOf, value); !ok {
			return
		}
	}
	before := n.x.key
	n.x.key = key
	n.forward(value)
	n.x.key = before
}

// askKey gets the key of a message from user code. If user code returns no key, the message becomes a dead letter.
func (n *node) askKey(function func(any) []byte, value any) (key []byte, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			n.bury("C501", value, reason, stack)
			key, ok = nil, false
		}
	}()
	if key = function(value); key == nil {
		n.bury("C503", value, "Partition returned nil; expected a key", "")
		return nil, false
	}
	return key, true
}

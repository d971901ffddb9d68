package stage

// rekey gives a message a new key and passes it on: the key from the function of a key_by, or the empty key of a
// collect.
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

// askKey calls a key function of the program. If the function fails, the message becomes a dead letter, and ok is
// false.
func (n *node) askKey(function func(any) []byte, value any) (key []byte, ok bool) {
	defer n.rescue(value)
	if key = function(value); key == nil {
		n.bury("C503", value, "Partition returned nil; expected a key", "")
		return nil, false
	}
	return key, true
}

package wallarooapi

// Visit is the argument of a visitor besides the state: an application that runs is asked for a visit with `wallaroo visit`, and then a
// visitor runs for every key that has state.
type Visit struct {
	Name     string // of the visit
	Metadata []byte // that was given with it; it must not be changed
	Key      []byte // whose state it is; it must not be changed
	deletes  bool
}

// DeleteState deletes the state of the key, once the visitor has returned.
func (v *Visit) DeleteState() { v.deletes = true }

// DeletesState reports whether the visitor has called DeleteState.
func (v *Visit) DeletesState() bool { return v.deletes }

// WithVisits is implemented by state computations that take visits: a StateComputation by a StateVisitor, a StateComputationMulti
// by a StateVisitorMulti (T223).
type WithVisits interface {
	// Visits returns the names of the visits, always the same, each once (T207).
	Visits() []string
}

// StateVisitor is a StateComputation that takes visits.
type StateVisitor interface {
	WithVisits
	// Visit runs once for each key that has state, at its place among the messages. It returns what Compute returns. A panic is a
	// dead letter of that key and visit (C501), and the key's state is as before it.
	Visit(visit *Visit, state interface{}) (interface{}, bool)
}

// StateVisitorMulti is a StateComputationMulti that takes visits.
type StateVisitorMulti interface {
	WithVisits
	// Visit is StateVisitor.Visit with a list of messages, whose nil items are left out.
	Visit(visit *Visit, state interface{}) ([]interface{}, bool)
}

package wallarooapi

// Visit is the argument that a visitor gets in addition to the state. A visitor is a function that runs for every key
// that has state, when the command `wallaroo visit` requests this from a running application.
type Visit struct {
	Name     string // name of the visit
	Metadata []byte // metadata passed with the request; must not be changed
	Key      []byte // key to which the state belongs; must not be changed
	deletes  bool
}

// DeleteState deletes the state of the key after the visitor has returned.
func (v *Visit) DeleteState() { v.deletes = true }

// DeletesState reports whether the visitor has called DeleteState.
func (v *Visit) DeletesState() bool { return v.deletes }

// WithVisits is implemented by state computations that accept visits. A StateComputation must implement StateVisitor,
// and a StateComputationMulti must implement StateVisitorMulti (T223).
type WithVisits interface {
	// Visits returns the names of the visits. It must always return the same names, each of them once (T207).
	Visits() []string
}

// StateVisitor is a StateComputation that accepts visits.
type StateVisitor interface {
	WithVisits
	// Visit runs once for each key that has state, at a fixed place in the order of the messages. It returns the same
	// values as Compute. If it panics, there is a dead letter for this key and visit (C501), and the state of the key
	// stays as it was before the visit.
	Visit(visit *Visit, state interface{}) (interface{}, bool)
}

// StateVisitorMulti is a StateComputationMulti that accepts visits.
type StateVisitorMulti interface {
	WithVisits
	// Visit is like StateVisitor.Visit, but returns a list of messages. Nil items are left out.
	Visit(visit *Visit, state interface{}) ([]interface{}, bool)
}

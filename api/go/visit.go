package wallarooapi

// Visit is the argument that a visitor gets in addition to the state. A visitor is a function that runs for every key
// that has state, when the command `wallaroo visit` requests this from a running application.
type Visit struct {
	Name     string // name of the visit
	Metadata []byte // metadata passed with the request; must not be changed
	Key      []byte // key to which the state belongs; must not be changed
	deletes  bool
}

// DeleteState requests that the state of the key is deleted after the visitor has returned.
func (v *Visit) DeleteState() { v.deletes = true }

// DeletesState reports whether the visitor has called DeleteState.
func (v *Visit) DeletesState() bool { return v.deletes }

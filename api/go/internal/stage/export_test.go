package stage

// LimitValues sets, for tests, how long a value may be with its key; it returns what sets it back.
func LimitValues(bytes int) (restore func()) {
	before := maxValueBytes
	maxValueBytes = bytes
	return func() { maxValueBytes = before }
}

// CutStates sets, for tests, the size of a piece of a state.
func (x *Executor) CutStates(bytes int) { x.keyed.pieceBytes = bytes }

// Preview is preview, for tests.
func Preview(value any) string { return preview(value) }

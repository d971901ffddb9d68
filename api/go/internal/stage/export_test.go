package stage

// LimitValues sets the maximum length of a value with its key for a test. It returns a function that restores the
// limit.
func LimitValues(bytes int) (restore func()) {
	before := maxValueBytes
	maxValueBytes = bytes
	return func() { maxValueBytes = before }
}

// CutStates sets the maximum size of the pieces of a large state for a test.
func (x *Executor) CutStates(bytes int) { x.keyed.pieceBytes = bytes }

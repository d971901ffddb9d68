package multierr

import theirs "github.com/lovoo/goka/multierr"

// The types are Goka's.
type (
	// ErrGroup is Goka's.
	ErrGroup = theirs.ErrGroup
	// Errors is Goka's.
	Errors = theirs.Errors
	// MultiWait is Goka's.
	MultiWait = theirs.MultiWait
)

// The functions are Goka's, as [github.com/lovoo/goka/multierr] describes them.
var (
	NewErrGroup  = theirs.NewErrGroup
	NewMultiWait = theirs.NewMultiWait
)

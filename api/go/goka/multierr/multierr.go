// Package multierr has Goka's groups of goroutines and of errors under this module's path.
package multierr

import theirs "github.com/lovoo/goka/multierr"

// These types are aliases of Goka's types.
type (
	// ErrGroup is an alias of Goka's type.
	ErrGroup = theirs.ErrGroup
	// Errors is an alias of Goka's type.
	Errors = theirs.Errors
	// MultiWait is an alias of Goka's type.
	MultiWait = theirs.MultiWait
)

// These are Goka's functions. See [github.com/lovoo/goka/multierr].
var (
	NewErrGroup  = theirs.NewErrGroup
	NewMultiWait = theirs.NewMultiWait
)

// Package multierr exports Goka's groups of goroutines and of errors, so that programs need not import Goka.
package multierr

import theirs "github.com/lovoo/goka/multierr"

// These types are aliases of Goka's types.
type (
	ErrGroup  = theirs.ErrGroup
	Errors    = theirs.Errors
	MultiWait = theirs.MultiWait
)

// These are Goka's functions. See [github.com/lovoo/goka/multierr].
var (
	NewErrGroup  = theirs.NewErrGroup
	NewMultiWait = theirs.NewMultiWait
)

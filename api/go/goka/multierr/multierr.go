package multierr

import (
	"context"

	theirs "github.com/lovoo/goka/multierr"
)

// The types are Goka's.
type (
	// ErrGroup is Goka's.
	ErrGroup = theirs.ErrGroup
	// Errors is Goka's.
	Errors = theirs.Errors
	// MultiWait is Goka's.
	MultiWait = theirs.MultiWait
)

// NewErrGroup is Goka's.
func NewErrGroup(ctx context.Context) (*ErrGroup, context.Context) {
	return theirs.NewErrGroup(ctx)
}

// NewMultiWait is Goka's.
func NewMultiWait(ctx context.Context, num int) *MultiWait {
	return theirs.NewMultiWait(ctx, num)
}

package codec

import (
	theirs "github.com/lovoo/goka/codec"
)

// The types are Goka's.
type (
	// Bytes is Goka's.
	Bytes = theirs.Bytes
	// Int64 is Goka's.
	Int64 = theirs.Int64
	// String is Goka's.
	String = theirs.String
)

// Package codec exports Goka's codecs, so that programs need not import Goka.
package codec

import (
	theirs "github.com/lovoo/goka/codec"
)

// These types are aliases of Goka's types.
type (
	Bytes  = theirs.Bytes
	Int64  = theirs.Int64
	String = theirs.String
)

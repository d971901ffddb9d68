// Package storage exports Goka's storages for tables, so that programs need not import Goka.
package storage

import theirs "github.com/lovoo/goka/storage"

// These types are aliases of Goka's types.
type (
	Builder  = theirs.Builder
	Iterator = theirs.Iterator
	Null     = theirs.Null
	NullIter = theirs.NullIter
	Storage  = theirs.Storage
)

// These are Goka's functions. See [github.com/lovoo/goka/storage].
var (
	BuilderWithOptions = theirs.BuilderWithOptions
	DefaultBuilder     = theirs.DefaultBuilder
	MemoryBuilder      = theirs.MemoryBuilder
	New                = theirs.New
	NewFile            = theirs.NewFile
	NewMemory          = theirs.NewMemory
	NewMultiIterator   = theirs.NewMultiIterator
	NewNull            = theirs.NewNull
)

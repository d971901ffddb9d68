// Package storage has Goka's storages for tables under this module's path.
package storage

import theirs "github.com/lovoo/goka/storage"

// These types are aliases of Goka's types.
type (
	// Builder is an alias of Goka's type.
	Builder = theirs.Builder
	// Iterator is an alias of Goka's type.
	Iterator = theirs.Iterator
	// Null is an alias of Goka's type.
	Null = theirs.Null
	// NullIter is an alias of Goka's type.
	NullIter = theirs.NullIter
	// Storage is an alias of Goka's type.
	Storage = theirs.Storage
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

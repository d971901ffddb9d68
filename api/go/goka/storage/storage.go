package storage

import theirs "github.com/lovoo/goka/storage"

// The types are Goka's.
type (
	// Builder is Goka's.
	Builder = theirs.Builder
	// Iterator is Goka's.
	Iterator = theirs.Iterator
	// Null is Goka's.
	Null = theirs.Null
	// NullIter is Goka's.
	NullIter = theirs.NullIter
	// Storage is Goka's.
	Storage = theirs.Storage
)

// The functions are Goka's, as [github.com/lovoo/goka/storage] describes them.
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

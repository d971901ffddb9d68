package storage

import (
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"

	theirs "github.com/lovoo/goka/storage"
)

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

// BuilderWithOptions is Goka's.
func BuilderWithOptions(path string, opts *opt.Options) Builder {
	return theirs.BuilderWithOptions(path, opts)
}

// DefaultBuilder is Goka's.
func DefaultBuilder(path string) Builder {
	return theirs.DefaultBuilder(path)
}

// MemoryBuilder is Goka's.
func MemoryBuilder() Builder {
	return theirs.MemoryBuilder()
}

// New is Goka's.
func New(db *leveldb.DB) (Storage, error) {
	return theirs.New(db)
}

// NewFile is Goka's.
func NewFile(path string, part int32) (Storage, error) {
	return theirs.NewFile(path, part)
}

// NewMemory is Goka's.
func NewMemory() Storage {
	return theirs.NewMemory()
}

// NewMultiIterator is Goka's.
func NewMultiIterator(iters []Iterator) Iterator {
	return theirs.NewMultiIterator(iters)
}

// NewNull is Goka's.
func NewNull() Storage {
	return theirs.NewNull()
}

package query

import (
	"github.com/gorilla/mux"
	"github.com/lovoo/goka"

	theirs "github.com/lovoo/goka/web/query"
)

// The types are Goka's.
type (
	// Humanizer is Goka's.
	Humanizer = theirs.Humanizer
	// HumanizerFunc is Goka's.
	HumanizerFunc = theirs.HumanizerFunc
	// Option is Goka's.
	Option = theirs.Option
	// Server is Goka's.
	Server = theirs.Server
)

// DefaultHumanizer is Goka's.
func DefaultHumanizer() Humanizer {
	return theirs.DefaultHumanizer()
}

// NewServer is Goka's.
func NewServer(basePath string, router *mux.Router, opts ...Option) *Server {
	return theirs.NewServer(basePath, router, opts...)
}

// WithHumanizer is Goka's.
func WithHumanizer(h Humanizer) Option {
	return theirs.WithHumanizer(h)
}

// WithLogger is Goka's.
func WithLogger(l goka.Logger) Option {
	return theirs.WithLogger(l)
}

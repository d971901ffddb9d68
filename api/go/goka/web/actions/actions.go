package actions

import (
	"context"
	"github.com/gorilla/mux"
	"github.com/lovoo/goka"

	theirs "github.com/lovoo/goka/web/actions"
)

// The types are Goka's.
type (
	// Actor is Goka's.
	Actor = theirs.Actor
	// Option is Goka's.
	Option = theirs.Option
	// Server is Goka's.
	Server = theirs.Server
)

// FuncActor is Goka's.
func FuncActor(description string, actor func(ctx context.Context, value string) error) Actor {
	return theirs.FuncActor(description, actor)
}

// NewServer is Goka's.
func NewServer(basePath string, router *mux.Router, opts ...Option) *Server {
	return theirs.NewServer(basePath, router, opts...)
}

// WithLogger is Goka's.
func WithLogger(l goka.Logger) Option {
	return theirs.WithLogger(l)
}

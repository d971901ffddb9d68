package index

import (
	"github.com/gorilla/mux"

	theirs "github.com/lovoo/goka/web/index"
)

// The types are Goka's.
type (
	// ComponentPathProvider is Goka's.
	ComponentPathProvider = theirs.ComponentPathProvider
	// Server is Goka's.
	Server = theirs.Server
)

// NewServer is Goka's.
func NewServer(basePath string, router *mux.Router) *Server {
	return theirs.NewServer(basePath, router)
}

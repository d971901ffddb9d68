package index

import theirs "github.com/lovoo/goka/web/index"

// The types are Goka's.
type (
	// ComponentPathProvider is Goka's.
	ComponentPathProvider = theirs.ComponentPathProvider
	// Server is Goka's.
	Server = theirs.Server
)

// NewServer is Goka's, as [github.com/lovoo/goka/web/index] describes it.
var NewServer = theirs.NewServer

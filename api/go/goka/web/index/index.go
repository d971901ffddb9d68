// Package index has Goka's page of links to other pages, under this module's path.
package index

import theirs "github.com/lovoo/goka/web/index"

// These types are aliases of Goka's types.
type (
	ComponentPathProvider = theirs.ComponentPathProvider
	Server                = theirs.Server
)

// NewServer is Goka's function. See [github.com/lovoo/goka/web/index].
var NewServer = theirs.NewServer

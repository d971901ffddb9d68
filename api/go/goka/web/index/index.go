// Package index exports Goka's web page of links to other pages, so that programs need not import Goka.
package index

import theirs "github.com/lovoo/goka/web/index"

// These types are aliases of Goka's types.
type (
	ComponentPathProvider = theirs.ComponentPathProvider
	Server                = theirs.Server
)

// NewServer is Goka's function. See [github.com/lovoo/goka/web/index].
var NewServer = theirs.NewServer

// Package query has Goka's page for the values of views, under this module's path.
package query

import theirs "github.com/lovoo/goka/web/query"

// These types are aliases of Goka's types.
type (
	// Humanizer is an alias of Goka's type.
	Humanizer = theirs.Humanizer
	// HumanizerFunc is an alias of Goka's type.
	HumanizerFunc = theirs.HumanizerFunc
	// Option is an alias of Goka's type.
	Option = theirs.Option
	// Server is an alias of Goka's type.
	Server = theirs.Server
)

// These are Goka's functions. See [github.com/lovoo/goka/web/query].
var (
	DefaultHumanizer = theirs.DefaultHumanizer
	NewServer        = theirs.NewServer
	WithHumanizer    = theirs.WithHumanizer
	WithLogger       = theirs.WithLogger
)

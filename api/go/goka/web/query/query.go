// Package query exports Goka's web page that shows the values of keys in views, so that programs need not import Goka.
package query

import theirs "github.com/lovoo/goka/web/query"

// These types are aliases of Goka's types.
type (
	Humanizer     = theirs.Humanizer
	HumanizerFunc = theirs.HumanizerFunc
	Option        = theirs.Option
	Server        = theirs.Server
)

// These are Goka's functions. See [github.com/lovoo/goka/web/query].
var (
	DefaultHumanizer = theirs.DefaultHumanizer
	NewServer        = theirs.NewServer
	WithHumanizer    = theirs.WithHumanizer
	WithLogger       = theirs.WithLogger
)

package query

import theirs "github.com/lovoo/goka/web/query"

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

// The functions are Goka's, as [github.com/lovoo/goka/web/query] describes them.
var (
	DefaultHumanizer = theirs.DefaultHumanizer
	NewServer        = theirs.NewServer
	WithHumanizer    = theirs.WithHumanizer
	WithLogger       = theirs.WithLogger
)

package actions

import theirs "github.com/lovoo/goka/web/actions"

// The types are Goka's.
type (
	// Actor is Goka's.
	Actor = theirs.Actor
	// Option is Goka's.
	Option = theirs.Option
	// Server is Goka's.
	Server = theirs.Server
)

// The functions are Goka's, as [github.com/lovoo/goka/web/actions] describes them.
var (
	FuncActor  = theirs.FuncActor
	NewServer  = theirs.NewServer
	WithLogger = theirs.WithLogger
)

// Package actions exports Goka's web page with actions of the program, which a user can start there, so that programs
// need not import Goka.
package actions

import theirs "github.com/lovoo/goka/web/actions"

// These types are aliases of Goka's types.
type (
	Actor  = theirs.Actor
	Option = theirs.Option
	Server = theirs.Server
)

// These are Goka's functions. See [github.com/lovoo/goka/web/actions].
var (
	FuncActor  = theirs.FuncActor
	NewServer  = theirs.NewServer
	WithLogger = theirs.WithLogger
)

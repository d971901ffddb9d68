// Package life holds the context in which user code runs.
package life

import "context"

var running, stop = context.WithCancel(context.Background())

// Context returns the context of the worker. It ends when results of user code are no longer used.
func Context() context.Context { return running }

// End ends the context. The worker calls it when it stops and gives up running calls.
func End() { stop() }

// Package life has the context in which user code runs.
package life

import "context"

var running, stop = context.WithCancel(context.Background())

// Context returns a context that lasts as long as results of user code go anywhere.
func Context() context.Context { return running }

// End ends the context: the worker stops, and calls in flight are given up.
func End() { stop() }

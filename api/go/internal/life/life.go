// Package life holds the context in which user code runs.
package life

import "context"

var running, stop = context.WithCancel(context.Background())

// Context returns the context of the worker. It lasts as long as results of user code are used.
func Context() context.Context { return running }

// End ends the context when the worker stops and gives up calls in flight.
func End() { stop() }

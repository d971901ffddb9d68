// Package usercode holds the context that functions of the program get from a worker.
package usercode

import "context"

var running, cancel = context.WithCancel(context.Background())

// Context returns the context of user functions. It ends when the worker stops and no longer uses their results.
func Context() context.Context { return running }

// Cancel ends the context. The worker calls it when it stops and gives up running calls.
func Cancel() { cancel() }

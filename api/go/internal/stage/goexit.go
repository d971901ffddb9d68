package stage

import (
	"fmt"
	"os"
	"runtime/debug"
)

// goexitStatus is the exit status of a worker whose goroutine user code has ended.
const goexitStatus = 70

// attended runs user code, and notes then that no message is in flight. User code that calls runtime.Goexit takes the call's
// goroutine away, which nothing can bring back: the process ends, so that the runtime finds the message in flight.
func (x *Executor) attended(run func() error) (err error) {
	hasReturned := false
	defer func() {
		if hasReturned {
			x.flight.Rest()
			return
		}
		if r := recover(); r != nil {
			x.flight.Rest()
			panic(r)
		}
		fmt.Fprintf(os.Stderr, "user code called runtime.Goexit, which ends a goroutine of the worker\n%s", debug.Stack())
		os.Exit(goexitStatus)
	}()
	err = run()
	hasReturned = true
	return err
}

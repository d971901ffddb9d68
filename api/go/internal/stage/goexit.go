package stage

import (
	"fmt"
	"os"
	"runtime/debug"
)

// goexitStatus is the exit status of a worker after user code has called runtime.Goexit.
const goexitStatus = 70

// InTest prepares the executor for a test kit. Sources also accept messages that are already decoded. If user code
// calls runtime.Goexit, only the goroutine of the test ends.
func (x *Executor) InTest() {
	x.inTest = true
	for _, n := range x.nodes {
		if n.source != nil {
			n.source.generated = true
		}
	}
}

// attended runs user code, and then records that no message is in flight. If user code calls runtime.Goexit, attended
// ends the process instead, so that the runtime finds this message as in flight.
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
		if x.inTest {
			return
		}
		fmt.Fprintf(os.Stderr, "user code called runtime.Goexit, which ends a goroutine of the worker\n%s", debug.Stack())
		os.Exit(goexitStatus)
	}()
	err = run()
	hasReturned = true
	return err
}

// apart runs user code that belongs to no stream in a separate goroutine. If this code calls runtime.Goexit, only this
// call fails, and the process continues.
func apart(code, name string, run func() error) error {
	var err error = &Failure{Code: code, Reason: name + ": called runtime.Goexit, which ends a goroutine of the worker"}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = run()
	}()
	<-ended
	return err
}

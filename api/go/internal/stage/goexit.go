package stage

import (
	"fmt"
	"os"
	"runtime/debug"
)

// goexitStatus is the exit status of a worker whose goroutine user code has ended.
const goexitStatus = 70

// InTest makes this the executor of a test kit: sources also take messages past their decoders, and user code that calls
// runtime.Goexit ends the goroutine, which is the test's.
func (x *Executor) InTest() {
	x.inTest = true
	for _, n := range x.nodes {
		if n.source != nil {
			n.source.generated = true
		}
	}
}

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

// apart runs user code of a call without a stream in a goroutine of its own: one that user code ends by runtime.Goexit is
// the failure of this call, and the process goes on.
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

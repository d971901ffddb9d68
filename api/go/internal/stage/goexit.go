package stage

import (
	"fmt"
	"os"
	"runtime/debug"
)

// goexitStatus is the exit status of a worker after user code has called runtime.Goexit.
const goexitStatus = 70

// InTest prepares the executor for package wallarootest. Sources also accept messages that are already decoded. If user
// code calls runtime.Goexit, e.g. by t.FailNow, only the goroutine of the test ends.
func (x *Executor) InTest() {
	x.inTest = true
	for _, n := range x.nodes {
		if n.source != nil {
			n.source.generated = true
		}
	}
}

// attended runs user code, and then records that no message is in flight. If user code calls runtime.Goexit, which
// would end this goroutine and leave the call without an answer, attended ends the process. The runtime then makes a
// dead letter of the message in flight.
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

// apart runs user code in a separate goroutine, for calls that run no stage (Split, Generate, Show). If user code calls
// runtime.Goexit, only this call fails, and the process continues.
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

package server

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errEnding refuses a call while the worker is ending. The client repeats the call with another process.
var errEnding = errBroken{status.Error(codes.Unavailable, "the worker ends")}

// work counts the running calls, so that the worker can finish them before it ends. Once its method end was called, no
// new call begins.
type work struct {
	mutex sync.Mutex
	calls int
	ends  bool
	idle  chan struct{} // closed when the worker is ending and no call is running
}

func newWork() *work { return &work{idle: make(chan struct{})} }

// do runs a call, or returns errEnding if the worker is ending.
func (w *work) do(call func() error) error {
	if !w.add(1) {
		return errEnding
	}
	defer w.add(-1)
	return call()
}

// add changes the number of running calls. It returns false for a new call if the worker is ending.
func (w *work) add(change int) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if change > 0 && w.ends {
		return false
	}
	w.calls += change
	if w.calls == 0 && w.ends {
		close(w.idle)
	}
	return true
}

// end prevents new calls.
func (w *work) end() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.ends {
		return
	}
	w.ends = true
	if w.calls == 0 {
		close(w.idle)
	}
}

// stream is an interceptor that runs the handler of a stream. If the worker is ending and no call is running, stream
// returns before the handler, which may still wait for requests of its client.
func (w *work) stream(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	finished := make(chan error, 1)
	go func() { finished <- handler(service, stream) }()
	select {
	case err := <-finished:
		return err
	case <-w.idle:
		return errEnding
	}
}

package server

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errEnding is for calls that come when the worker has been asked to end: the client repeats them with another process.
var errEnding = errBroken{status.Error(codes.Unavailable, "the worker ends")}

// work counts the calls that are in flight. When the worker shall end they are finished, and no other begins.
type work struct {
	mutex sync.Mutex
	calls int
	ends  bool
	idle  chan struct{} // closed when the worker shall end and no call is in flight
}

func newWork() *work { return &work{idle: make(chan struct{})} }

// do runs a call, unless the worker shall end.
func (w *work) do(call func() error) error {
	if !w.add(1) {
		return errEnding
	}
	defer w.add(-1)
	return call()
}

// add changes the number of calls in flight; a call more is refused when the worker shall end.
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

// end lets no other call begin.
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

// stream runs the handler of a stream. A handler waits for its client most of the time; when the worker shall end and no
// call is in flight, the stream ends all the same.
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

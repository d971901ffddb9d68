package server

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errEnding is returned for calls that arrive after the worker was asked to end. The client repeats them with another
// process.
var errEnding = errBroken{status.Error(codes.Unavailable, "the worker ends")}

// work counts the calls in flight. After the request to end, these calls are finished and no new call begins.
type work struct {
	mutex sync.Mutex
	calls int
	ends  bool
	idle  chan struct{} // closed when no call is in flight after the request to end
}

func newWork() *work { return &work{idle: make(chan struct{})} }

// do runs a call, unless the worker is ending.
func (w *work) do(call func() error) error {
	if !w.add(1) {
		return errEnding
	}
	defer w.add(-1)
	return call()
}

// add changes the number of calls in flight. It refuses a new call if the worker is ending.
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

// stream runs the handler of a stream. A handler mostly waits for its client. If the worker is ending and no call is
// in flight, the stream ends without waiting for the client.
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

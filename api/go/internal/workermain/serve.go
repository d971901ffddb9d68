package workermain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/server"
	"wallarooapi/internal/span"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/usercode"
)

const (
	socketName        = "worker.sock"
	defaultCacheBytes = 512 << 20 // default in SPECIFICATION.md
	// besideCacheBytes is the memory for the program itself and for messages in flight.
	besideCacheBytes = 192 << 20
	// gracePeriod is the time that calls in flight get to end. The whole shutdown may take 5 s.
	gracePeriod = 3 * time.Second
	flushPeriod = 1500 * time.Millisecond // limit for sending spans, because their receiver may be gone
)

// serve answers the calls of the runtime on a socket in a directory, until the program gets a signal to end.
func serve(application *declaration.Application, directory string) error {
	cacheBytes, err := sizeOf("WALLAROO_STATE_CACHE_BYTES", defaultCacheBytes)
	if err != nil {
		return err
	}
	stateBytes, err := sizeOf("WALLAROO_MAX_STATE_BYTES", stage.MaxStateBytes)
	if err != nil {
		return err
	}
	tune(cacheBytes)
	ending := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if !signal.Ignored(syscall.SIGHUP) { // ignored e.g. under nohup
		ending = append(ending, syscall.SIGHUP)
	}
	stop, forget := signal.NotifyContext(context.Background(), ending...)
	defer forget()
	serving, _, ended, err := begin(application, directory, cacheBytes, int(stateBytes))
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-stop.Done():
		serving.End(gracePeriod)
		usercode.Cancel()
		flush()
		return nil
	}
}

// begin starts the server of an application on a socket in a directory. It returns the path of the socket, and the
// channel ended, which gets the error with which the server ends.
func begin(application *declaration.Application, directory string, cacheBytes int64, stateBytes int) (
	serving *server.Server, path string, ended chan error, err error,
) {
	document, err := described(application)
	if err != nil {
		return nil, "", nil, err
	}
	if path, err = filepath.Abs(filepath.Join(directory, socketName)); err != nil {
		return nil, "", nil, err
	}
	listener, err := listen(path)
	if err != nil {
		return nil, "", nil, err
	}
	serving, ended = server.New(application, document, "unix:"+path, cacheBytes, stateBytes), make(chan error, 1)
	go func() { ended <- serving.Serve(listener) }()
	if err := appear(path); err != nil {
		serving.Stop()
		return nil, "", nil, err
	}
	return serving, path, ended, nil
}

// flush sends the collected tracing spans, within a limited time.
func flush() {
	some, done := context.WithTimeout(context.Background(), flushPeriod)
	defer done()
	span.Flush(some)
}

// listen binds the socket under a temporary name. When the worker is ready, the function appear gives the socket its
// final name, and the runtime begins to call the worker.
func listen(path string) (net.Listener, error) {
	temporary := path + ".part"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", temporary)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	return listener, os.Chmod(temporary, 0o600)
}

// appear gives the socket its final name, under which the runtime looks for it.
func appear(path string) error {
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("the socket %s: %w", path, err)
	}
	return nil
}

// sizeOf returns the number of bytes that an environment variable contains. If the variable is not set, it returns the
// parameter otherwise.
func sizeOf(variable string, otherwise int64) (int64, error) {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise, nil
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 {
		return 0, fmt.Errorf("%s is %q", variable, text)
	}
	return size, nil
}

// tune makes the garbage collector run less often. The live heap is small compared with the data that passes through,
// so that with Go's default the collector takes a third of the time. The memory limit is 1.25 times the cache plus
// besideCacheBytes. Near this limit the collector runs often again. The variables GOGC and GOMEMLIMIT have precedence.
func tune(cacheBytes int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cacheBytes + cacheBytes/4 + besideCacheBytes)
	}
}

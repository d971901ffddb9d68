package goka

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// processing is the error of a callback that has failed on a message. Its text is Goka's.
type processing struct {
	partition int32
	err       error
	stack     string // lines of the program in a panic's stack
}

func (p *processing) Error() string {
	return fmt.Sprintf("error processing message (partition=%d): %v", p.partition, p.err)
}

func (p *processing) Unwrap() error { return p.err }

// withStack is a processing error in the form in which Goka's Run returns it. After a panic, the text also has the
// lines of the stack that belong to the program.
type withStack struct{ *processing }

func (w withStack) Error() string {
	if w.stack == "" {
		return w.processing.Error()
	}
	return w.processing.Error() + "\n" + w.stack
}

// failures keeps the first failure of a run, which Run returns. Later failures are mostly repetitions of this one,
// because a failed message is processed again.
type failures struct {
	mutex sync.Mutex
	first error
}

func (f *failures) record(failed *processing) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.first == nil {
		f.first = withStack{failed}
	}
}

func (f *failures) get() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.first
}

const (
	maxFrames = 64
	ownPrefix = "wallarooapi/goka."
)

// userStack returns the lines of a panic's stack that belong to the program. Call it in the deferred function that
// recovers.
func userStack() string {
	var counters [maxFrames]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	var lines []string
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		isOwn := strings.HasPrefix(frame.Function, ownPrefix)
		isSkipped := isOwn || strings.HasPrefix(frame.Function, "runtime.")
		if isOwn && len(lines) > 0 {
			break
		}
		if !isSkipped {
			name := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
			_, name, _ = strings.Cut(name, ".")
			lines = append(lines, fmt.Sprintf("%s\n\t%s:%d", name, frame.File, frame.Line))
		}
	}
	return strings.Join(lines, "\n")
}

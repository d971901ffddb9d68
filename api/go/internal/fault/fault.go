// Package fault contains the points at which a test of recovery can make the worker kill itself, with the environment
// variable WALLAROO_FAULT.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Point is a named place in the code. SPECIFICATION.md states what has happened before a point is reached.
type Point struct {
	name   string
	counts map[uint64]bool
	count  atomic.Uint64
}

// Points that the worker reaches in each call. A test of recovery can let the worker kill itself there.
var (
	BeforeCompute = point("worker.before_compute")
	AfterCompute  = point("worker.after_compute")
	AfterReply    = point("worker.after_reply")
)

func point(name string) *Point {
	return &Point{name: name, counts: counts(os.Getenv("WALLAROO_FAULT"), name)}
}

// counts returns the numbers n with this meaning: the process dies when it reaches the point for the nth time. text is
// the value of WALLAROO_FAULT: entries POINT:NUMBER for all points, separated by commas.
func counts(text, name string) map[uint64]bool {
	found := map[uint64]bool{}
	for part := range strings.SplitSeq(text, ",") {
		number, is := strings.CutPrefix(part, name+":")
		if n, err := strconv.ParseUint(number, 10, 64); is && err == nil && n > 0 {
			found[n] = true
		}
	}
	return found
}

// Reach kills the process if a test has requested this. Otherwise it costs one comparison.
func (p *Point) Reach() {
	if len(p.counts) == 0 {
		return
	}
	if n := p.count.Add(1); p.counts[n] && isFirst(p.name+":"+strconv.FormatUint(n, 10)) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// isFirst reports whether no process has died for this entry of WALLAROO_FAULT before. Deaths are recorded in the
// directory WALLAROO_FAULT_DIR; if it is not set, each process dies. If the directory cannot be used, isFirst panics,
// because the test would pass without a death.
func isFirst(entry string) bool {
	directory := os.Getenv("WALLAROO_FAULT_DIR")
	if directory == "" {
		return true
	}
	file, err := os.OpenFile(filepath.Join(directory, entry), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false
	}
	if err != nil {
		panic(fmt.Errorf("WALLAROO_FAULT_DIR cannot be used: %w", err))
	}
	return file.Close() == nil
}

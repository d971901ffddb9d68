package goka

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// calls holds the calls of callbacks that have not returned, with their start times. If the run ends before they
// return, its error names these calls.
type calls struct {
	mutex sync.Mutex
	open  map[*call]time.Time
}

func (c *calls) begin(one *call) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.open[one] = time.Now()
}

func (c *calls) end(one *call) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.open, one)
}

// running returns a text about the callbacks that have not returned, with their messages and durations, or "" if there
// are none.
func running(all []*Processor) string {
	var open []string
	for _, p := range all {
		calls := &p.group.calls
		calls.mutex.Lock()
		for one, began := range calls.open {
			open = append(open, fmt.Sprintf("group %s, %s, for %v", p.graph.Group(), one, time.Since(began).Round(time.Second)))
		}
		calls.mutex.Unlock()
	}
	slices.Sort(open)
	return strings.Join(open, "; ")
}

// late keeps the error of a goroutine that called a method of its context after the callback had returned. The group's
// next callback fails with this error.
type late struct{ first atomic.Pointer[error] }

func (l *late) note(err error) { l.first.CompareAndSwap(nil, &err) }

// take returns the error and removes it. It returns nil if there is none.
func (l *late) take() error {
	if l.first.Load() == nil {
		return nil
	}
	if first := l.first.Swap(nil); first != nil {
		return *first
	}
	return nil
}

// Package emission carries the emissions of a computation besides its results.
package emission

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	wa "wallarooapi"
)

// List has the emissions of one call, in order: messages, and wallarooapi.Output for named outputs.
type List []any

// Undeclared is the panic of a computation that emits to an output which it does not declare. Code: C527.
type Undeclared struct {
	Name     string
	Declared []string
}

// Error says to which output, and which there are.
func (u *Undeclared) Error() string {
	declared := "none"
	if len(u.Declared) > 0 {
		names := slices.Sorted(slices.Values(u.Declared))
		for i, name := range names {
			names[i] = strconv.Quote(name)
		}
		declared = strings.Join(names, ", ")
	}
	return fmt.Sprintf("emitted to the output %q; it declares %s", u.Name, declared)
}

// Context is the context of one call of a function that may emit.
type Context struct {
	context.Context
	mutex  sync.Mutex
	list   List
	isOver bool // the function has returned, and the list is that of the caller
}

var lost atomic.Int64 // emissions after the end of their call

func isPowerOfTen(count int64) bool {
	for count > 1 && count%10 == 0 {
		count /= 10
	}
	return count == 1
}

type key struct{}

// Begin returns the context of a call.
func Begin(around context.Context) *Context { return &Context{Context: around} }

// Value returns the context itself for Emit, however it was derived.
func (c *Context) Value(asked any) any {
	if asked == (key{}) {
		return c
	}
	return c.Context.Value(asked)
}

// Emit adds a message for an output; it panics where the call's computation declares none. After the end of the call only the log
// gets it: the message to which it belongs has its results.
func Emit(ctx context.Context, name string, value any) {
	c, is := ctx.Value(key{}).(*Context)
	if !is {
		panic(&Undeclared{Name: name})
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isOver {
		if count := lost.Add(1); isPowerOfTen(count) {
			log.Printf("emitted to the output %q after the function had returned, for an earlier message (%d by now): that is lost; a function "+
				"waits for the goroutines that emit for it", name, count)
		}
		return
	}
	c.list = append(c.list, wa.Output{Name: name, Value: value})
}

// end ends the call, and returns its emissions.
func (c *Context) end() List {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.isOver = true
	return c.list
}

// With returns a result after the emissions before it; the result alone if there are none, or there is no context.
func (c *Context) With(result any) any {
	list := c.end()
	switch {
	case len(list) == 0:
		return result
	case result == nil:
		return list
	}
	return append(list, result)
}

// All returns results after the emissions before them.
func (c *Context) All(results []any) []any {
	list := c.end()
	if len(list) == 0 {
		return results
	}
	return append(list, results...)
}

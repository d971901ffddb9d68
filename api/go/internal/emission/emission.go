// Package emission holds the results of user functions, and collects the messages that a function emits to named
// outputs while it runs.
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

// Results are what a function returns: one message or several, and whether to persist the state of the key. A message
// may be a wallarooapi.Output, and nil is no message.
type Results struct {
	One     any
	Many    []any
	Persist bool
}

// Undeclared is the value of the panic in a computation that emits to an output that it does not declare. The message
// becomes a dead letter with the code C527.
type Undeclared struct {
	Name     string
	Declared []string
}

// Error names the output and the declared outputs.
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

// Context is the context of one call of a function that may emit. It collects the emitted messages.
type Context struct {
	context.Context
	mutex  sync.Mutex
	list   []any // messages in order
	isOver bool  // the function has returned, and list belongs to the caller
}

var lost atomic.Int64 // number of messages that were emitted after the end of their call

type key struct{}

// Begin returns the context for one call of a function that may emit. The caller ends the call with With.
func Begin(around context.Context) *Context { return &Context{Context: around} }

// Value returns c itself for the key that Emit asks for, so that Emit finds c in contexts derived from c, too.
func (c *Context) Value(asked any) any {
	if asked == (key{}) {
		return c
	}
	return c.Context.Value(asked)
}

// Emit adds a message for an output. It panics if the computation of the call declares no outputs. After the end of the
// call it only logs that the message is lost, because the results of the call have already been returned.
func Emit(ctx context.Context, name string, value any) {
	c, is := ctx.Value(key{}).(*Context)
	if !is {
		panic(&Undeclared{Name: name})
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isOver {
		count := lost.Add(1)
		if isPowerOfTen := strings.TrimRight(strconv.FormatInt(count, 10), "0") == "1"; isPowerOfTen {
			log.Printf("emitted to the output %q after the function had returned, for an earlier message (%d by now): that is lost; a function "+
				"waits for the goroutines that emit for it", name, count)
		}
		return
	}
	c.list = append(c.list, wa.Output{Name: name, Value: value})
}

// With ends the call. It returns the messages that the function has emitted, followed by those that it has returned.
func (c *Context) With(results Results) Results {
	if c == nil {
		return results
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.isOver = true
	if len(c.list) > 0 {
		results.One, results.Many = nil, append(append(c.list, results.One), results.Many...)
	}
	return results
}

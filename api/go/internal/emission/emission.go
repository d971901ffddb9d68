// Package emission carries what a computation emits besides its results.
package emission

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	wa "wallarooapi"
)

// List is what one call gave, in order: messages, and wallarooapi.Output for named outputs.
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
	list List
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

// Emit adds a message for an output; it panics where the call's computation declares none.
func Emit(ctx context.Context, name string, value any) {
	c, is := ctx.Value(key{}).(*Context)
	if !is {
		panic(&Undeclared{Name: name})
	}
	c.list = append(c.list, wa.Output{Name: name, Value: value})
}

// With returns a result after what was emitted before it; the result alone if that is nothing, or there is no context.
func (c *Context) With(result any) any {
	switch {
	case c == nil || len(c.list) == 0:
		return result
	case result == nil:
		return c.list
	}
	return append(c.list, result)
}

// All returns results after what was emitted before them.
func (c *Context) All(results []any) []any {
	if c == nil || len(c.list) == 0 {
		return results
	}
	return append(c.list, results...)
}

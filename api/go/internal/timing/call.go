package timing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"wallarooapi/internal/calendar"
)

// Changes collects the timers that a user function sets and deletes during one call for a key. They are applied only if
// the call succeeds.
type Changes struct {
	Now    int64
	names  []string // names of the timers that the step declares
	mutex  sync.Mutex
	asked  []*SetTimer // a timer that is due at None is deleted
	isOver bool        // the call has ended, and later changes have no effect
}

// NewChanges begins to collect the timer changes of one call. now is the time of the call in milliseconds, and names
// are the timers that the step declares.
func NewChanges(now int64, names []string) *Changes {
	return &Changes{Now: now, names: names}
}

// Wrong is the value of the panic in a user function that sets a timer to an impossible time, or a timer that its step
// does not declare. The message becomes a dead letter with the code C529.
type Wrong struct{ Name, Reason string }

// Error describes the fault.
func (w *Wrong) Error() string { return fmt.Sprintf("timer %q %s", w.Name, w.Reason) }

type key struct{}

// Within returns a context in which Of finds the changes, for the user function of the call. If c is nil, because the
// state has neither TTL nor timers, Within returns ctx.
func (c *Changes) Within(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, c)
}

// Of returns the changes that Within has put into a context. If there are none, Of panics. what is the public method
// that the program has called, for the text of the panic.
func Of(ctx context.Context, what string) *Changes {
	call, is := ctx.Value(key{}).(*Changes)
	if !is {
		panic(fmt.Errorf("%s was called outside of the functions of a state step with TTL or OnTimer", what))
	}
	return call
}

// Set sets a timer. The time is rounded up to whole milliseconds.
func (c *Changes) Set(name string, at time.Time) {
	if year := at.UTC().Year(); year < 1 || year > 9999 {
		panic(&Wrong{name, fmt.Sprintf("is set to %v; expected a time of the years 1 to 9999", at)})
	}
	c.ask(name, min(at.Add(time.Millisecond-1).UnixMilli(), calendar.LastMs))
}

// SetAfter sets a timer that fires a duration after the time of the call.
func (c *Changes) SetAfter(name string, after time.Duration) {
	if after < 0 {
		panic(&Wrong{name, fmt.Sprintf("is set to %v from now; expected no time before", after)})
	}
	c.Set(name, time.UnixMilli(c.Now).Add(after))
}

// Delete deletes a timer.
func (c *Changes) Delete(name string) { c.ask(name, None) }

func (c *Changes) ask(name string, due int64) {
	if !slices.Contains(c.names, name) {
		panic(&Wrong{name, fmt.Sprintf("is not declared by the step, which has %q; declare it with OnTimer", c.names)})
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.isOver {
		c.asked = append(c.asked, &SetTimer{name, due})
	}
}

// end closes the changes and returns them. A goroutine that sets or deletes a timer later has no effect.
func (c *Changes) end() []*SetTimer {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.isOver = true
	return c.asked
}

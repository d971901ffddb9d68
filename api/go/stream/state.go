package stream

import (
	"context"
	"encoding/binary"
	"reflect"
	"strconv"
	"time"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/timing"
)

// Initial is an optional interface of state types. A state type implements it if the state of a new key is not the zero
// value.
type Initial interface {
	// Init sets the fields of a new state. It is called once for each key.
	Init()
}

// MapState calls a function for each message, with the state of the message's key, and returns the stream of results. A
// new key has the zero value of S, or an empty map. If *S implements Initial, Init is called on the new state. The
// function may change the state in place. Every change is persisted. If the function fails on a message, the state
// stays as it was. Package variables are not state: each worker has its own, and they are not saved. Messages with the
// same key are processed in arrival order.
//
// Messages need a key: put KeyBy or Collect before this step, unless the source gives keys (T229). Types of messages
// and states must be serializable (C504): see Codec.
func MapState[In, S, Out any](s Stream[In], name string, function func(ctx context.Context, in In, state *S) (Out, error), options ...StateOption) Stream[Out] {
	made := &stateful[In, S, Out]{function: function, settle: resultsOf[Out]().settle, visitors: visitors[S, Out]{}, timers: timers[S, Out]{}}
	step := &declaration.Step{Name: name, Kind: declaration.StateComputation, Stateful: made, State: keyedState[S](s.application, name)}
	return withOptions[In, Out](s, step, function, &made.emits, options)
}

// FlatMapState is MapState for a function that returns any number of results.
func FlatMapState[In, S, Out any](s Stream[In], name string, function func(ctx context.Context, in In, state *S) ([]Out, error), options ...StateOption) Stream[Out] {
	made := &stateful[In, S, []Out]{function: function, settle: resultsOf[Out]().all, visitors: visitors[S, []Out]{}, timers: timers[S, []Out]{}}
	step := &declaration.Step{Name: name, Kind: declaration.StateComputationMulti, Stateful: made, State: keyedState[S](s.application, name)}
	return withOptions[In, Out](s, step, function, &made.emits, options)
}

// StateOption is an option of MapState and FlatMapState: an Output to which the function emits, or a TTL.
type StateOption interface {
	ofState(step *declaration.Step)
}

// withOptions applies the options of a MapState or FlatMapState to its step, and adds the step. It sets emits to true
// if the step has named outputs, else to false.
func withOptions[In, Out any](s Stream[In], step *declaration.Step, function any, emits *bool, options []StateOption) Stream[Out] {
	for _, option := range options {
		option.ofState(step)
	}
	*emits, step.IsEvent = len(step.Outputs) > 0, s.timed
	next := withState[In, Out](s, step, function)
	for _, option := range options {
		if ttl, is := option.(TTL); is && !declaration.IsTTL(time.Duration(ttl)) {
			s.application.wrong(step.Name, "TTL", time.Duration(ttl).String(), "whole milliseconds, from one to 100 years", step.Path, step.Place)
		}
	}
	return next
}

// keyedState describes the state of a step, with one value of type S for each key.
func keyedState[S any](a *Application, name string) *declaration.State {
	return &declaration.State{Name: a.stateName(name), Builder: builder[S]{}, ByKey: true}
}

// stateName returns a unique name for the state of a step: the name of the step, with a number if another state has
// this name.
func (a *Application) stateName(name string) string {
	unique := name
	for number := 2; a.states[unique]; number++ {
		unique = name + " " + strconv.Itoa(number)
	}
	a.states[unique] = true
	return unique
}

// withState adds a step with state. It reports an input type that is not serializable (C504), because messages move to
// the partition of their key.
func withState[In, Out any](s Stream[In], step *declaration.Step, function any) Stream[Out] {
	next := add[In, Out](s, step, function)
	a := s.application
	a.declared.LearnState(step)
	t := reflect.TypeFor[In]()
	if err := codec.CheckType(t); err != nil && t.Kind() != reflect.Interface {
		a.declared.Report(diagnostic.Of("C504", "step", step.Name, "type", t, "error", err, "fix", codec.Remedy(err)),
			declaration.Pointer(step.Path), step.Place)
	}
	return next
}

// builder builds the state of a new key: a zero value or an empty map, after Init if S implements Initial.
type builder[S any] struct{}

func (builder[S]) Build() any {
	state := new(S)
	if v := reflect.ValueOf(state).Elem(); v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	}
	if initial, ok := any(state).(Initial); ok {
		initial.Init()
	}
	return state
}

// stateful is a step with state. Its functions return a result of type R, which is Out or []Out, and an error.
type stateful[In, S, R any] struct {
	emitter
	function func(context.Context, In, *S) (R, error)
	settle   func(R, error) emission.Results
	visitors[S, R]
	timers timers[S, R]
}

func (c *stateful[In, S, R]) Within(ctx context.Context) any {
	bound := *c
	bound.around = ctx
	return &bound
}

func (c *stateful[In, S, R]) Compute(at *timing.Changes, data, state any) emission.Results {
	ctx, call := c.begin()
	return c.persisted(call, c.settle(c.function(at.Within(ctx), data.(In), state.(*S))))
}

func (c *stateful[In, S, R]) Visit(visit *Visit, state any) emission.Results {
	ctx, call := c.begin()
	return c.persisted(call, c.settle(c.visitors[visit.Name](ctx, visit, state.(*S))))
}

// Fire runs the function of a timer that is due.
func (c *stateful[In, S, R]) Fire(at *timing.Changes, timer *Timer, state any) emission.Results {
	ctx, call := c.begin()
	return c.persisted(call, c.settle(c.timers[timer.Name](at.Within(ctx), timer, state.(*S))))
}

// Handlers returns the functions of the step's timers.
func (c *stateful[In, S, R]) Handlers() timers[S, R] { return c.timers }

// persisted completes the results of a call: it adds the messages that the function emitted to named outputs, and the
// request to save the state.
func (c *stateful[In, S, R]) persisted(call *emission.Context, results emission.Results) emission.Results {
	results.Persist = true
	return call.With(results)
}

func bytesOf(number uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), number) }

package declaration

import (
	wa "wallarooapi"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/timing"
)

// Stateless is the function of a step without state, with one result or several.
type Stateless interface {
	Compute(data any) emission.Results
}

// Stateful has the functions of a state step, each with one result or several. call has the time and the timer changes
// of a call. It is nil if the state has neither TTL nor timers.
type Stateful interface {
	Compute(call *timing.Changes, data, state any) emission.Results
	Visit(visit *wa.Visit, state any) emission.Results
	// Fire runs the function of a timer.
	Fire(call *timing.Changes, timer *wa.Timer, state any) emission.Results
}

type single struct{ wa.Computation }

func (c single) Compute(data any) emission.Results {
	return emission.Results{One: c.Computation.Compute(data)}
}

type multi struct{ wa.ComputationMulti }

func (c multi) Compute(data any) emission.Results {
	return emission.Results{Many: c.ComputationMulti.Compute(data)}
}

// plain is the part of a state computation of Wallaroo's API, which has neither visits nor timers.
type plain struct{}

func (plain) Visit(*wa.Visit, any) emission.Results { return emission.Results{} }

func (plain) Fire(*timing.Changes, *wa.Timer, any) emission.Results { return emission.Results{} }

// FunctionsOf returns the functions of a wallarooapi.StateComputation or StateComputationMulti.
func FunctionsOf(computation any) Stateful {
	if several, is := computation.(wa.StateComputationMulti); is {
		return stateMulti{StateComputationMulti: several}
	}
	return stateSingle{StateComputation: computation.(wa.StateComputation)}
}

type stateSingle struct {
	wa.StateComputation
	plain
}

func (c stateSingle) Compute(_ *timing.Changes, data, state any) (made emission.Results) {
	made.One, made.Persist = c.StateComputation.Compute(data, state)
	return made
}

type stateMulti struct {
	wa.StateComputationMulti
	plain
}

func (c stateMulti) Compute(_ *timing.Changes, data, state any) (made emission.Results) {
	made.Many, made.Persist = c.StateComputationMulti.Compute(data, state)
	return made
}

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

// Stateful has the functions of a state step: Compute for a message, Visit for a visit (a call for every key of the
// state), and Fire for a timer. The parameter call collects the timers that a function sets. It is nil if the state has
// neither TTL nor timers.
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

// plain provides Visit and Fire of Stateful for state computations of Wallaroo's own API, which have neither visits nor
// timers.
type plain struct{}

func (plain) Visit(*wa.Visit, any) emission.Results { return emission.Results{} }

func (plain) Fire(*timing.Changes, *wa.Timer, any) emission.Results { return emission.Results{} }

// FunctionsOf converts a wallarooapi.StateComputation or StateComputationMulti to Stateful.
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

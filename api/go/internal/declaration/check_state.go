package declaration

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

func (a *Application) checkStates() {
	states, keys := map[string]*State{}, map[string][]topology.DeclaredKey{}
	for step := range a.Steps() {
		if step.State == nil {
			continue
		}
		state := step.State
		if first := cmp.Or(states[state.Name], state); state.Class != "" && (first.Class != state.Class || first.Type != state.Type) {
			a.Report(diagnostic.Of("T205", "name", state.Name, "first", first.Class, "second", state.Class),
				Pointer(step.Path, "state"), step.Place)
		} else if state.Class != "" {
			states[state.Name] = state
		}
		a.checkKeys(step, keys)
	}
}

// checkKeys reports keys that are repeated in a step's list, and a list that differs from that of another step with the
// same state.
func (a *Application) checkKeys(step *Step, lists map[string][]topology.DeclaredKey) {
	state := step.State
	pointer := Pointer(step.Path, "state", "key", "values")
	seen := make(map[string]bool, len(state.Keys))
	for _, key := range state.Keys {
		if seen[string(key.Bytes)] {
			a.Report(diagnostic.Of("T203", "what", fmt.Sprintf("key %v of state %q", key, state.Name), "kind", "key"), pointer, step.Place)
		}
		seen[string(key.Bytes)] = true
	}
	first, known := lists[state.Name]
	switch {
	case len(state.Keys) == 0:
	case !known:
		lists[state.Name] = state.Keys
	case !sameKeys(first, state.Keys):
		a.Report(diagnostic.Of("T205", "name", state.Name, "first", shownKeys(first), "second", shownKeys(state.Keys)), pointer, step.Place)
	}
}

func shownKeys(keys []topology.DeclaredKey) string { return "the keys " + diagnostic.Shown(keys) }

func sameKeys(first, second []topology.DeclaredKey) bool {
	return slices.EqualFunc(first, second, func(a, b topology.DeclaredKey) bool {
		return a.Integer == b.Integer && bytes.Equal(a.Bytes, b.Bytes)
	})
}

// checkMessageKeys reports steps that need messages with keys but get messages without keys.
func (a *Application) checkMessageKeys() {
	parts := a.Parts()
	known := map[string]string{}
	var keyless func(path string) string // returns the name of a source whose messages arrive without a key
	keyless = func(path string) string {
		if source := parts.Sources[path]; source != nil {
			if source.GivesKeys() {
				return ""
			}
			return source.Name
		}
		step := parts.Steps[path]
		if step == nil || step.State != nil || step.Kind == KeyBy || step.Kind == Collect {
			return ""
		}
		if name, visited := known[path]; visited {
			return name
		}
		for _, input := range step.Inputs {
			if known[path] = keyless(input); known[path] != "" {
				break
			}
		}
		return known[path]
	}
	for step := range a.Steps() {
		if step.State != nil && step.State.ByKey {
			a.checkMessageKey(step, keyless)
		}
	}
}

func (a *Application) checkMessageKey(step *Step, keyless func(path string) string) {
	for _, input := range step.Inputs {
		if name := keyless(input); name != "" {
			found := diagnostic.Of("T229", "what", fmt.Sprintf("step %q keeps state by the key of messages", step.Name), "input", name)
			if step.Remote != nil {
				method := map[string]string{"state_computation": "Computation"}[step.Kind]
				found.Fix = fmt.Sprintf("put KeyBy or Collect before it, or, if it keeps no state, declare it with %s(%q, ...)",
					cmp.Or(method, "ComputationMulti"), step.Name)
			}
			a.Report(found, Pointer(step.Path), step.Place)
			return
		}
	}
}

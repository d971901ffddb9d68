package declaration

import (
	"cmp"
	"fmt"

	"wallarooapi/internal/diagnostic"
)

// checkStates reports steps that use one state name for states of different types.
func (a *Application) checkStates() {
	states := map[string]*State{}
	for step := range a.Steps() {
		if step.State == nil || step.State.Class == "" {
			continue
		}
		state := step.State
		if first := cmp.Or(states[state.Name], state); first.Class != state.Class || first.Type != state.Type {
			a.Report(diagnostic.Of("T205", "name", state.Name, "first", first.Class, "second", state.Class),
				Pointer(step.Path, "state"), step.Place)
		} else {
			states[state.Name] = state
		}
	}
}

// checkMessageKeys reports state steps that use the key of a message but may get messages without a key.
func (a *Application) checkMessageKeys() {
	keyless := map[string]string{} // by path, the name of a source whose messages arrive or leave there without a key
	for source := range a.Sources() {
		if !source.GivesKeys() {
			keyless[source.Path] = source.Name
		}
	}
	for step := range a.Steps() {
		name := ""
		for _, input := range step.Inputs {
			name = cmp.Or(name, keyless[input])
		}
		switch {
		case name == "" || step.Kind == KeyBy || step.Kind == Collect:
		case step.State == nil:
			keyless[step.Path] = name
		case step.State.ByKey:
			a.Report(diagnostic.Of("T229", "what", fmt.Sprintf("step %q keeps state by the key of messages", step.Name), "input", name),
				Pointer(step.Path), step.Place)
		}
	}
}

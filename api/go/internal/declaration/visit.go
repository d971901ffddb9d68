package declaration

import (
	wa "wallarooapi"
	"wallarooapi/internal/diagnostic"
)

// visitsOf returns the visits that a state computation accepts. It reports a computation without the matching method
// Visit.
func (a *Application) visitsOf(step *Step, object any) []string {
	declared, is := object.(wa.WithVisits)
	if !is || len(declared.Visits()) == 0 {
		return nil
	}
	_, isSingle := object.(wa.StateVisitor)
	_, isMulti := object.(wa.StateVisitorMulti)
	signature := "Visit(visit *wallarooapi.Visit, state interface{}) (interface{}, bool)"
	if step.Kind == StateComputationMulti {
		isSingle, signature = isMulti, "Visit(visit *wallarooapi.Visit, state interface{}) ([]interface{}, bool)"
	}
	if !isSingle {
		a.Report(diagnostic.Of("T223", "what", "state computation", "type", typeName(object), "method", "Visit",
			"signature", signature), Pointer(step.Path), step.Place)
	}
	return declared.Visits()
}

// checkVisits reports unusable and repeated names of visits and timers.
func (a *Application) checkVisits() {
	for step := range a.Steps() {
		a.checkListed(step, "visit", step.Visits)
		a.checkListed(step, "timer", step.Timers)
	}
}

func (a *Application) checkListed(step *Step, what string, names []string) {
	seen := map[string]bool{}
	for _, name := range names {
		a.checkName(what, name, Pointer(step.Path, what+"s"), step.Place)
		if seen[name] {
			a.Wrong(Pointer(step.Path), step.Place, step.Name, what+"s", diagnostic.Shown(name)+" again", what+"s with names of their own")
		}
		seen[name] = true
	}
}

package declaration

import "wallarooapi/internal/diagnostic"

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

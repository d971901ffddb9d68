package wallarootest

import "slices"

// Visit runs the visitors with this name for every key that has state, as `wallaroo visit` does, and processes their
// output. It returns the number of keys for which a visitor ran, including those with a dead letter.
func (a *App) Visit(name string, metadata []byte) int {
	a.t.Helper()
	a.goesOn("Visit")
	if known := a.visits(); !slices.Contains(known, name) {
		a.t.Fatalf("wallarootest: no step takes the visit %q; there are %q", name, known)
		return 0
	}
	written, id, err := a.journal.Visit(name, metadata, a.now.UnixMilli())
	if err != nil {
		a.t.Fatalf("wallarootest: visit %q: %v", name, err)
		return 0
	}
	a.take(written)
	a.flush()
	return a.engine.Visited(id)
}

// visits returns the names of the application's visitors.
func (a *App) visits() (names []string) {
	for step := range a.declared.Steps() {
		names = append(names, step.Visits...)
	}
	return names
}

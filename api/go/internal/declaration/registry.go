package declaration

import (
	"sync"

	"wallarooapi/internal/diagnostic"
)

// Result is the outcome of a program's setup: an application and its document, or findings.
type Result struct {
	Application *Application
	Text        string
	Programs    map[string]string // whose components the application names, by worker
	Found       []diagnostic.Diagnostic
}

var registry struct {
	sync.Mutex
	results map[string]Result // by the text that ToJson gave
}

// File remembers a result by its text, which a tutorial-style ApplicationSetup returns.
func File(result Result) {
	registry.Lock()
	defer registry.Unlock()
	if registry.results == nil {
		registry.results = map[string]Result{}
	}
	registry.results[result.Text] = result
}

// Lookup returns the result that was filed under a text.
func Lookup(text string) (Result, bool) {
	registry.Lock()
	defer registry.Unlock()
	result, ok := registry.results[text]
	return result, ok
}

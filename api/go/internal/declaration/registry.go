package declaration

import (
	"sync"

	"wallarooapi/internal/diagnostic"
)

// SetupResult is the outcome of a program's setup: an application and its document, or findings.
type SetupResult struct {
	Application *Application
	Text        string
	Programs    map[string]string // whose components the application names, by worker
	Found       []diagnostic.Diagnostic
}

var registry struct {
	sync.Mutex
	results map[string]SetupResult // by the text that ToJson gave
}

// File remembers a result by its text, which a tutorial-style ApplicationSetup returns.
func File(result SetupResult) {
	registry.Lock()
	defer registry.Unlock()
	if registry.results == nil {
		registry.results = map[string]SetupResult{}
	}
	registry.results[result.Text] = result
}

// Lookup returns the result that was filed under a text.
func Lookup(text string) (SetupResult, bool) {
	registry.Lock()
	defer registry.Unlock()
	result, ok := registry.results[text]
	return result, ok
}

package declaration

import (
	"sync"

	"wallarooapi/internal/diagnostic"
)

// SetupResult is the outcome of a program's setup function: an application and its document, or findings.
type SetupResult struct {
	Application *Application
	Text        string
	Programs    map[string]string // targets of the programs whose components the application uses, by worker
	Found       []diagnostic.Diagnostic
}

var registry sync.Map // text that ToJson has returned → SetupResult

// File stores a result under its Text, which ToJson returns. An ApplicationSetup returns only this text, so Lookup
// needs it to find the result.
func File(result SetupResult) { registry.Store(result.Text, result) }

// Lookup returns the result that was stored under a text.
func Lookup(text string) (SetupResult, bool) {
	found, ok := registry.Load(text)
	result, _ := found.(SetupResult)
	return result, ok
}

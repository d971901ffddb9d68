package launch

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// Text ends the declaration of an application: it returns its document, or an object with the diagnostics, and files it
// under this text.
func Text(declared *declaration.Application) string {
	result := resultOf(declared)
	declaration.File(result)
	return result.Text
}

func resultOf(declared *declaration.Application) declaration.Result {
	found := declared.Check()
	if len(found) == 0 {
		document, err := Document(declared)
		if err == nil {
			return declaration.Result{Application: declared, Text: string(topology.Canonical(document.Tree()))}
		}
		found = append(found, diagnostic.Of("I901", "reason", err))
	}
	text, err := json.MarshalIndent(map[string]any{"diagnostics": found}, "", "  ")
	if err != nil {
		text = fmt.Appendf(nil, "%v", diagnostic.Error(found))
	}
	return declaration.Result{Text: string(text), Found: found}
}

// Document makes the whole topology of an application, hashes included.
func Document(application *declaration.Application) (*topology.Document, error) {
	document, err := application.Document()
	if err != nil {
		return nil, err
	}
	document.Worker.CodeHash, err = codeHash()
	return document, err
}

// codeHash is computed once: the binary does not change under a running program.
var codeHash = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the path of this program: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("this program: %w", err)
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", fmt.Errorf("this program: %w", err)
	}
	return topology.Notation(digest.Sum(nil)), nil
})

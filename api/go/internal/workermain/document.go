package workermain

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

// Text completes the declaration of an application or library. It returns the topology document as JSON, or an object
// with the findings. The setup of the program returns this text, by which declaration.Lookup finds the declaration.
func Text(declared *declaration.Application) string {
	result := resultOf(declared)
	declaration.File(result)
	return result.Text
}

// resultOf checks a declaration, and makes its document if there are no findings.
func resultOf(declared *declaration.Application) declaration.SetupResult {
	found := declared.Check()
	if len(found) == 0 {
		document, err := described(declared)
		if err == nil {
			text := string(topology.Canonical(document.Tree))
			return declaration.SetupResult{Application: declared, Text: text, Programs: declared.Programs()}
		}
		found = append(found, diagnostic.Of("I901", "reason", err))
	}
	text, err := json.MarshalIndent(map[string]any{"diagnostics": found}, "", "  ")
	if err != nil {
		text = fmt.Appendf(nil, "%v", diagnostic.Error(found))
	}
	return declaration.SetupResult{Text: string(text), Found: found}
}

// described makes the whole document of an application or library, including hashes.
func described(declared *declaration.Application) (*declaration.Document, error) {
	hash, err := codeHash()
	if err != nil {
		return nil, err
	}
	return declared.Describe(hash)
}

// codeHash returns the hash of this program's binary. It computes the hash only once, because a running binary does not
// change.
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

// Package vector reads the test vectors that all languages share.
package vector

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Read reads a file of topology-schema/vectors.
func Read(t testing.TB, name string, into any) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "../../../../../topology-schema/vectors", name)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

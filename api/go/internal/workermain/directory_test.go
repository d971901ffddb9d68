package workermain

import (
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSocketDirectory draws paths TMPDIR of any length. A worker can listen in the directory, and only its user can
// enter.
func TestSocketDirectory(t *testing.T) {
	random := rand.New(rand.NewSource(7))
	root, err := os.MkdirTemp("/tmp", "d")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	for _, length := range append(random.Perm(100)[:20], 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60) {
		temporary := filepath.Join(root, strings.Repeat("t", length+1))
		if err := os.MkdirAll(temporary, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", temporary)
		directory, err := SocketDirectory("wallaroo-goka-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(directory)
		listener, err := net.Listen("unix", filepath.Join(directory, "worker.sock.part"))
		if err != nil {
			t.Fatalf("TMPDIR of %d bytes: %v", len(temporary), err)
		}
		_ = listener.Close()
		if found, err := os.Stat(directory); err != nil || found.Mode().Perm() != 0o700 {
			t.Fatalf("%s: %v, %v", directory, found.Mode(), err)
		}
		if len(temporary) < 60 && !strings.HasPrefix(directory, temporary) {
			t.Fatalf("%s is not below %s", directory, temporary)
		}
	}
}

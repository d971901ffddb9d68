package flight_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wallarooapi/internal/flight"
)

func words(t *testing.T, path string) [4]uint64 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found [4]uint64
	for i := range found {
		found[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
	return found
}

func TestTheFileTellsWhatIsAtWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flight")
	if err := os.WriteFile(path, make([]byte, flight.Bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := flight.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	pid := uint64(os.Getpid())
	record.Begin(7)
	record.At(41)
	if found := words(t, path); found != [4]uint64{7, 42, pid, 0} {
		t.Errorf("in flight: %v", found)
	}
	at := record.Rest()
	if found := words(t, path); found != [4]uint64{7, 0, pid, 0} {
		t.Errorf("at rest: %v", found)
	}
	record.Resume(at)
	if found := words(t, path); found != [4]uint64{7, 42, pid, 0} {
		t.Errorf("in flight again: %v", found)
	}
	record.Begin(8)
	if found := words(t, path); found != [4]uint64{8, 0, pid, 0} {
		t.Errorf("before the next call: %v", found)
	}
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	record.At(1)
	if err := record.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestNoFileIsNoError(t *testing.T) {
	record, err := flight.Open("")
	if err != nil {
		t.Fatal(err)
	}
	record.Begin(1)
	record.At(2)
	if at := record.Rest(); at != 3 {
		t.Errorf("in flight was %d; want 3", at)
	}
}

func TestFilesThatCannotBeMapped(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{short: "has 8 bytes; expected 32", short + "-missing": "no such file"} {
		if _, err := flight.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v; want %q", err, want)
		}
	}
}

package fault

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("WALLAROO_FAULT") != "" {
		for range 3 {
			BeforeCompute.Reach()
			os.Stdout.WriteString("x")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCounts(t *testing.T) {
	text := "worker.after_reply:3,driver.after_commit:1,worker.after_reply:9,worker.after_reply:x,worker.after_reply"
	if found := counts(text, "worker.after_reply"); !maps.Equal(found, map[uint64]bool{3: true, 9: true}) {
		t.Errorf("counts are %v", found)
	}
	if found := counts("", "worker.after_reply"); len(found) > 0 {
		t.Errorf("without the variable: %v", found)
	}
}

func TestAProcessDiesOncePerEntry(t *testing.T) {
	directory := t.TempDir()
	for _, want := range []string{"x", "xxx"} {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), "WALLAROO_FAULT=worker.before_compute:2", "WALLAROO_FAULT_DIR="+directory)
		output, err := command.Output()
		if string(output) != want {
			t.Errorf("it came to %q (%v); want %q", output, err, want)
		}
		if died := err != nil && strings.Contains(err.Error(), "killed"); died != (want == "x") {
			t.Errorf("it ended with %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(directory, "worker.before_compute:2")); err != nil {
		t.Error(err)
	}
}

func TestADirectoryThatIsMissing(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "WALLAROO_FAULT=worker.before_compute:1", "WALLAROO_FAULT_DIR="+filepath.Join(t.TempDir(), "none"))
	output, err := command.CombinedOutput()
	if text := string(output); err == nil || !strings.Contains(text, "panic: WALLAROO_FAULT_DIR cannot be used: open ") {
		t.Errorf("%v, %s", err, text)
	}
}

package goka

import (
	"bytes"
	"context"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wallarooapi/internal/diagnostic"
)

// shell is a child that runs a script in place of the runtime.
func shell(script string) (*child, *bytes.Buffer, chan struct{}) {
	var said bytes.Buffer
	ready := make(chan struct{})
	return &child{command: []string{"sh", "-c", script}, log: log.New(&said, "", 0), ready: func() { close(ready) }}, &said, ready
}

func TestAChildThatFails(t *testing.T) {
	c, said, _ := shell("echo one; echo R611 the query stopped >&2; exit 4")
	err := c.run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(err.Error(), "R611 the query stopped") {
		t.Errorf("%v", err)
	}
	if c.reports(diagnostic.InUse) || said.String() != "wallaroo: one\nwallaroo: R611 the query stopped\n" {
		t.Errorf("%q", said)
	}
}

// TestBrokersAreThoseOfTheProgram checks that WALLAROO_BROKERS does not move the runtime away from the brokers of the
// program's views and emitters.
func TestBrokersAreThoseOfTheProgram(t *testing.T) {
	t.Setenv(brokersVariable, "127.0.0.1:1")
	t.Setenv("OTHER", "kept")
	c, said, _ := shell("echo \"$WALLAROO_BROKERS, $OTHER\"")
	if err := c.run(context.Background()); err == nil || said.String() != "wallaroo: , kept\n" {
		t.Errorf("%q, %v", said, err)
	}
}

func TestAChildEndsWithTheContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ended")
	c, _, ready := shell("trap 'echo in order >" + file + "; exit 0' TERM; echo '" + readyLine + "'; while :; do sleep 0.05; done")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	<-ready
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "in order\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTheCommandIsFound(t *testing.T) {
	directory := t.TempDir()
	inner := filepath.Join(directory, "a", "b")
	binary := filepath.Join(directory, ".venv", "bin", "wallaroo")
	for _, path := range []string{inner, filepath.Dir(binary)} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inner)
	t.Setenv("PATH", directory)
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("WALLAROO", "")
	// A parent of the temporary directory may have a runtime.
	if found, err := runtimeCommand(); err == nil && strings.HasPrefix(found[0], directory) || err != nil && err != errNoRuntime {
		t.Errorf("%v, %v", found, err)
	}
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := runtimeCommand(); err != nil || len(found) != 1 || !strings.HasSuffix(found[0], "/.venv/bin/wallaroo") {
		t.Errorf("%v, %v", found, err)
	}
	if os.Getuid() == 0 { // who is not root cannot give a file away
		if err := os.Chown(binary, 12_345, -1); err != nil {
			t.Fatal(err)
		}
		if found, err := runtimeCommand(); err == nil && strings.HasPrefix(found[0], directory) {
			t.Errorf("another user's %v", found)
		}
	}
	t.Setenv("WALLAROO", "nice wallaroo")
	if found, err := runtimeCommand(); err != nil || len(found) != 2 || found[1] != "wallaroo" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestCheckpointsOfGroupsDiffer(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	one := checkpointOf("g/1", []string{"b:1", "a:1"})
	if !strings.HasPrefix(one, "/state/wallaroo/goka/g_1-") || one != checkpointOf("g/1", []string{"a:1", "b:1"}) {
		t.Error(one)
	}
	if one == checkpointOf("g_1", []string{"a:1", "b:1"}) || one == checkpointOf("g/1", []string{"a:1"}) {
		t.Error("two groups have one checkpoint")
	}
}

// TestStatesOfAProcessorThatDoesNotRun calls the methods of a processor before Run.
func TestStatesOfAProcessorThatDoesNotRun(t *testing.T) {
	p := &Processor{graph: counted(), state: NewSignal(ProcStateIdle, ProcStateRunning), done: make(chan struct{})}
	p.group = groupOf(p.graph)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := p.WaitForReadyContext(ctx); err != context.DeadlineExceeded || p.Recovered() || p.Error() != nil {
		t.Error(err)
	}
	p.Stop()
	if _, err := p.Get("k"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Error(err)
	}
	if stats := p.Stats(); len(stats.Group) != 0 || stats.Lookup == nil {
		t.Errorf("%+v", stats)
	}
}

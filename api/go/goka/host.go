package goka

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/workermain"
)

const (
	hashDigits = 8
	// A run that was killed needs some time to release its checkpoint.
	takeoverStep = time.Second
)

var takeoverTime = 2 * time.Minute

// host runs processors: it serves their callbacks as a worker in this process, and runs the runtime as a child process.
// It returns when the runtime has ended, by itself or because ctx has ended.
func host(ctx context.Context, all []*Processor, checkpoint string) error {
	directory, err := workermain.SocketDirectory("wallaroo-goka-")
	if err != nil {
		return fmt.Errorf("the directory of the worker's socket: %w", err)
	}
	defer os.RemoveAll(directory)
	var groups []*group
	var arguments []string
	for _, p := range all {
		groups = append(groups, p.group)
		arguments = append(arguments, p.group.options.runArguments...)
	}
	hosted, err := workermain.Host(declaration.Revealed(application(all[0].brokers, groups)), directory)
	if err != nil {
		return err
	}
	defer hosted.End()
	document := filepath.Join(directory, "topology.json")
	if err := os.WriteFile(document, []byte(hosted.Topology), 0o600); err != nil {
		return fmt.Errorf("the topology: %w", err)
	}
	command, err := runtimeCommand()
	if err != nil {
		return err
	}
	command = append(command, "run", document, "--attach", "main="+hosted.Endpoint, "--checkpoint", checkpoint)
	return supervise(ctx, all, append(command, arguments...))
}

// supervise runs the command of the runtime and returns its error. If another run uses the checkpoint, supervise
// repeats the command for up to takeoverTime: a killed run needs some time to release its checkpoint.
func supervise(ctx context.Context, all []*Processor, command []string) error {
	log, waits := all[0].group.options.log, false
	for began := time.Now(); ; {
		run := &child{command: command, log: log, ready: func() { setState(all, ProcStateRunning) }}
		err := run.run(ctx)
		setState(all, ProcStateStopping)
		switch {
		case err == nil || !run.reports(diagnostic.InUse):
			return err
		case time.Since(began) > takeoverTime:
			return fmt.Errorf("the checkpoint of %s is in use by %s: a group has one processor at a time; stop that one, or give this one "+
				"a group of its own (R610)", groupsOf(all), run.holder())
		case !waits:
			log.Printf("the checkpoint of %s is in use by %s; waiting up to %v", groupsOf(all), run.holder(), takeoverTime)
			waits = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(takeoverStep):
		}
	}
}

// groupsOf returns the names of the processors' groups as a text for errors.
func groupsOf(all []*Processor) string {
	var names []string
	for _, p := range all {
		names = append(names, string(p.graph.Group()))
	}
	if len(names) == 1 {
		return "group " + names[0]
	}
	return "groups " + strings.Join(names, ", ")
}

// checkpointOf returns the checkpoint directory of a group. Groups with the same name but other brokers have different
// directories.
func checkpointOf(group Group, brokers []string) string {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		base = filepath.Join(os.Getenv("HOME"), ".local", "state")
	}
	sorted := slices.Sorted(slices.Values(brokers))
	digest := sha256.Sum256([]byte(strings.Join(sorted, ",") + "\x00" + string(group)))
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == os.PathSeparator || r < ' ' {
			return '_'
		}
		return r
	}, string(group))
	return filepath.Join(base, "wallaroo", "goka", name+"-"+hex.EncodeToString(digest[:])[:hashDigits])
}

// Checkpoint returns the directory with the group's state and positions. Remove it to start over. After [RunTogether]
// it is the common directory of all its groups. Goka has no such method.
func (p *Processor) Checkpoint() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.checkpoint
}

var errNoRuntime = errors.New("the command `wallaroo` was not found: install the runtime, " +
	"e.g. with `make setup` in a checkout, and put .venv/bin on PATH, or set WALLAROO to the command")

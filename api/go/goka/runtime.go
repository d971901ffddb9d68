package goka

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"wallarooapi/internal/diagnostic"
)

const (
	readyLine = "Application has successfully initialized."
	keptLines = 40
	// The runtime delivers pending output before it ends.
	endTime = 90 * time.Second
	// Child processes of the runtime may hold its output open for a while.
	outputTime = 10 * time.Second
)

// child is a child process with `wallaroo run`, the runtime of the processors.
type child struct {
	command []string
	log     Logger
	ready   func() // is called when the application is initialized

	mutex sync.Mutex
	rest  []byte   // incomplete last line
	lines []string // last keptLines lines
	quiet bool     // the output has reported that the checkpoint is in use, for which the caller has its own message
}

// run starts the runtime and waits until it ends. It returns nil if ctx ended first, and otherwise an error.
func (c *child) run(ctx context.Context) error {
	command := exec.Command(c.command[0], c.command[1:]...)
	command.Stdout, command.Stderr, command.WaitDelay = c, c, outputTime
	// The variable would replace the brokers of the runtime, but not those of the program's views, emitters and topics.
	command.Env = append(os.Environ(), brokersVariable+"=")
	// A process group of its own keeps Ctrl-C, which the program handles, away from the runtime. The runtime gets
	// SIGTERM if this process dies for any reason.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal is sent when the thread that started the child ends
		err := command.Start()
		started <- err
		if err == nil {
			ended <- command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("`%s` does not start: %w", strings.Join(c.command, " "), err)
	}
	select {
	case err := <-ended:
		return c.failure(err)
	case <-ctx.Done():
		c.end(command.Process.Pid, ended)
		return nil
	}
}

// end stops the runtime with SIGTERM and kills it after endTime.
func (c *child) end(pid int, ended <-chan error) {
	syscall.Kill(pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(endTime):
		c.log.Printf("the runtime did not end within %v, and is killed", endTime)
		syscall.Kill(-pid, syscall.SIGKILL)
		<-ended
	}
}

// failure returns an error with the last lines of the output, for a runtime that has ended by itself.
func (c *child) failure(err error) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	text := strings.Join(c.lines, "\n")
	if err == nil {
		return fmt.Errorf("`wallaroo run` ended by itself:\n%s", text)
	}
	return fmt.Errorf("`wallaroo run` failed (%w):\n%s", err, text)
}

// reports reports whether the last lines of the output contain an error of this kind.
func (c *child) reports(kind string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return diagnostic.Reports(strings.Join(c.lines, "\n"), kind)
}

// holder returns the runtime's description of the other run that uses the checkpoint, or "" if the last lines of the
// output have none.
func (c *child) holder() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, line, _ := strings.Cut(strings.Join(c.lines, "\n"), "is in use by ")
	holder, _, _ := strings.Cut(line, "\n")
	return holder
}

// Write gets the output of the runtime, stdout and stderr, and logs it line by line.
func (c *child) Write(data []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.rest = append(c.rest, data...)
	for {
		line, rest, found := bytes.Cut(c.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		c.rest = rest
		c.take(string(line))
	}
}

// take logs and stores a line of the output. If the line says that the application is initialized, it calls the
// function ready.
func (c *child) take(line string) {
	c.quiet = c.quiet || diagnostic.Reports(line, diagnostic.InUse)
	if !c.quiet {
		c.log.Printf("wallaroo: %s", line)
	}
	c.lines = append(c.lines, line)
	if len(c.lines) > keptLines {
		c.lines = c.lines[1:]
	}
	if line == readyLine {
		c.ready()
	}
}

// runtimeCommand finds the command of the runtime: in $WALLAROO, on PATH, or in a virtual environment of this
// directory or a parent.
func runtimeCommand() ([]string, error) {
	if own := strings.Fields(os.Getenv("WALLAROO")); len(own) > 0 {
		return own, nil
	}
	if path, err := exec.LookPath("wallaroo"); err == nil {
		return []string{path}, nil
	}
	places := []string{os.Getenv("VIRTUAL_ENV")}
	directory, err := os.Getwd()
	for err == nil {
		places = append(places, filepath.Join(directory, ".venv"))
		parent := filepath.Dir(directory)
		if parent == directory {
			break
		}
		directory = parent
	}
	for _, place := range places {
		path := filepath.Join(place, "bin", "wallaroo")
		if _, err := exec.LookPath(path); err == nil && filepath.IsAbs(path) && isTrusted(place) && isTrusted(path) {
			return []string{path}, nil
		}
	}
	return nil, errNoRuntime
}

// isTrusted reports whether this user or root owns a file. A virtual environment in a parent directory, such as /tmp,
// may be another user's.
func isTrusted(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	return owner == 0 || int(owner) == os.Getuid()
}

// Package workermain is the main function of user programs. It starts a program in the mode that the runtime requests
// by environment variables: as a worker, or to emit its topology.
package workermain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/trace"
)

// These are the exit statuses of a program.
const (
	exitGood  = 0
	exitBad   = 1
	exitUsage = 2
	exitSetup = 3
)

// Setup is the function of a program that declares the application. It returns the text that ToJson has returned.
type Setup func() string

// Run does the work that the environment variables request, and returns the exit status of the program. function is the
// name of setup, for error messages.
func Run(function string, setup Setup) int {
	mode := os.Getenv("WALLAROO_MODE")
	if mode == "" {
		fmt.Fprintln(os.Stderr, diagnostic.Of("W412", "program", filepath.Base(os.Args[0])))
		return exitUsage
	}
	if mode != "emit" && mode != "worker" {
		return fail(fmt.Errorf("WALLAROO_MODE is %q", mode))
	}
	result := declare(function, setup)
	if mode == "emit" {
		return emit(result, os.Getenv("WALLAROO_EMIT_FILE"))
	}
	directory := os.Getenv("WALLAROO_WORKER_DIR")
	if directory == "" {
		return fail(errors.New("WALLAROO_WORKER_DIR is not set"))
	}
	if len(result.Found) > 0 {
		if err := write(filepath.Join(directory, "failure.json"), result); err != nil {
			return fail(err)
		}
		return exitSetup
	}
	if err := serve(result.Application, directory); err != nil {
		return fail(err)
	}
	return exitGood
}

// fail prints an error that is a bug of Wallaroo, and returns the exit status.
func fail(err error) int {
	fmt.Fprintln(os.Stderr, diagnostic.Of("I901", "reason", err))
	return exitBad
}

// declare calls the program's setup. A panic of the setup becomes a finding.
func declare(function string, setup Setup) (result declaration.SetupResult) {
	defer func() {
		if r := recover(); r != nil {
			reason, stack := trace.Panic(r)
			place := trace.First(stack)
			result = declaration.SetupResult{Found: []diagnostic.Diagnostic{
				diagnostic.Of("T217", "what", function, "error", "panic: "+reason).
					At("", place.File, place.Line).With(stack),
			}}
		}
	}()
	if found := checkArguments(os.Getenv("WALLAROO_ARGS")); len(found) > 0 {
		return declaration.SetupResult{Found: found}
	}
	text := setup()
	result, ok := declaration.Lookup(text)
	if !ok {
		return declaration.SetupResult{Found: []diagnostic.Diagnostic{
			diagnostic.NoApplication(function, "it returned "+diagnostic.Shown(text)),
		}}
	}
	return result
}

// checkArguments reports a variable WALLAROO_ARGS that is not a list of arguments in JSON.
func checkArguments(text string) []diagnostic.Diagnostic {
	var args []string
	if text == "" || json.Unmarshal([]byte(text), &args) == nil {
		return nil
	}
	return []diagnostic.Diagnostic{diagnostic.Of("R716", "what", "WALLAROO_ARGS",
		"reason", "it is not a JSON array of strings",
		"fix", `set it to e.g. ["--in", "127.0.0.1:7010"]`)}
}

// emit writes the topology, or the findings of the declaration, to the file at path, which the runtime reads.
func emit(result declaration.SetupResult, path string) int {
	if path == "" {
		return fail(errors.New("WALLAROO_EMIT_FILE is not set"))
	}
	if err := write(path, result); err != nil {
		return fail(err)
	}
	return exitGood
}

// writeDeclared writes the document, and the targets of other programs whose components the application uses.
func writeDeclared(content *bytes.Buffer, result declaration.SetupResult) error {
	what := "topology"
	if result.Application.Offers != nil {
		what = declaration.LibraryName
	}
	fmt.Fprintf(content, `{"%s": %s`, what, result.Text)
	if len(result.Programs) > 0 {
		programs, err := json.Marshal(result.Programs)
		if err != nil {
			return err
		}
		fmt.Fprintf(content, `, "programs": %s`, programs)
	}
	content.WriteString("}\n")
	return nil
}

// write writes the topology, or the findings of the declaration, so that a reader never sees an incomplete file.
func write(path string, result declaration.SetupResult) error {
	var content bytes.Buffer
	if len(result.Found) == 0 {
		if err := writeDeclared(&content, result); err != nil {
			return err
		}
	} else if err := json.NewEncoder(&content).Encode(map[string]any{"diagnostics": result.Found}); err != nil {
		return fmt.Errorf("the diagnostics: %w", err)
	}
	temporary := path + ".part"
	if err := os.WriteFile(temporary, content.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

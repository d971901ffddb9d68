// Package trace describes a panic of user code: the reason as one line, and the stack without frames of the SDK.
package trace

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"wallarooapi/internal/diagnostic"
)

const (
	maxFrames     = 64
	maxCharacters = 1000
)

// Panic describes a panic, given the value that recover returned. It must be called in the deferred function itself,
// while the stack of the panic is still active.
func Panic(recovered any) (reason, stack string) {
	text := fmt.Sprint(recovered) // which handles panics in the value's own Error or String method
	return diagnostic.Cut(strings.Join(strings.Fields(text), " "), maxCharacters), userStack()
}

// userStack returns the current stack, innermost frame first, without frames of Go's runtime and the SDK.
func userStack() string {
	var counters [maxFrames]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(4, counters[:])])
	var text strings.Builder
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !isForeign(frame.Function) {
			fmt.Fprintf(&text, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return text.String()
		}
	}
}

// isForeign reports whether a function belongs to the SDK, to Go or to gRPC, and not to the program.
func isForeign(function string) bool {
	return InSDK(function) || strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "google.golang.org/grpc") ||
		strings.HasPrefix(function, "testing.")
}

// InSDK reports whether a function belongs to this module. function is its full name, as package runtime returns it.
// The module's tests and examples count as user programs.
func InSDK(function string) bool {
	isUser := strings.Contains(function, "_test.") || strings.HasPrefix(function, "wallarooapi/internal/testdata/example.")
	return !isUser && (strings.HasPrefix(function, "wallarooapi/") || strings.HasPrefix(function, "wallarooapi."))
}

// Name returns the name of a function without its package. A function literal has the name of the surrounding function
// and a number.
func Name(function any) string {
	full := runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name()
	_, name, _ := strings.Cut(full[strings.LastIndexByte(full, '/')+1:], ".")
	return name
}

// Line is a line of source code.
type Line struct {
	File string
	Line int
}

// First returns the line of the program in which a panic began. stack is a text that Panic has returned.
func First(stack string) Line {
	for line := range strings.Lines(stack) {
		file, number, ok := strings.Cut(strings.TrimSpace(line), ".go:")
		if !ok || !strings.HasPrefix(line, "\t") {
			continue
		}
		if parsed, err := strconv.Atoi(number); err == nil {
			return Line{file + ".go", parsed}
		}
	}
	return Line{}
}

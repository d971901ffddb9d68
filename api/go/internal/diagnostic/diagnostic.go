// Package diagnostic describes findings: errors in a program or run, each with a stable code and a remedy. Their texts
// are in the error catalogue, errors.json, which all languages share.
package diagnostic

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const shownCharacters = 80

//go:embed errors.json
var catalogueJSON []byte

type entry struct {
	Code    string `json:"code"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

var catalogue = sync.OnceValue(func() map[string]entry {
	var file struct {
		Errors []entry `json:"errors"`
	}
	if err := json.Unmarshal(catalogueJSON, &file); err != nil {
		panic(fmt.Sprintf("the embedded error catalogue: %v", err))
	}
	entries := make(map[string]entry, len(file.Errors))
	for _, e := range file.Errors {
		entries[e.Code] = e
	}
	return entries
})

// Diagnostic is one finding: a code, the fault, its place, and the remedy.
type Diagnostic struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Fix       string `json:"fix"`
	Pointer   string `json:"pointer,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Traceback string `json:"traceback,omitempty"`
}

// These are the kinds of errors that programs distinguish. The catalogue contains the kind of each code.
const (
	InUse   = "in_use"
	NoVisit = "no_visit"
)

var codes = regexp.MustCompile(`\b[TPWCRI][0-9]{3}\b`)

// Reports reports whether the output of a command of the runtime contains a finding whose code is of this kind.
func Reports(output, kind string) bool {
	return slices.ContainsFunc(codes.FindAllString(output, -1), func(code string) bool { return catalogue()[code].Kind == kind })
}

// Of makes the diagnostic of a code in the catalogue. pairs contains the names of the placeholders in the texts, each
// followed by its value.
func Of(code string, pairs ...any) Diagnostic {
	e, ok := catalogue()[code]
	if !ok {
		return Diagnostic{Code: "I901", Message: "code " + code + " is not in the catalogue", Fix: code}
	}
	replacements := []string{"{{", "{", "}}", "}"}
	for i := 0; i+1 < len(pairs); i += 2 {
		replacements = append(replacements, "{"+fmt.Sprint(pairs[i])+"}", fmt.Sprint(pairs[i+1]))
	}
	fill := strings.NewReplacer(replacements...)
	return Diagnostic{Code: code, Message: fill.Replace(e.Message), Fix: fill.Replace(e.Fix)}
}

// Wrong makes the diagnostic (T207) of a wrong argument of a public function. The remedy is fix if it is given, and
// otherwise to pass the expected value.
func Wrong(method, parameter, actual, expected string, fix ...string) Diagnostic {
	remedy := append(fix, "pass "+expected)[0]
	return Of("T207", "method", method, "parameter", parameter, "actual", actual, "expected", expected, "fix", remedy)
}

// NoApplication makes the diagnostic (T201) of a setup function that returns no application.
func NoApplication(setup, reason string) Diagnostic {
	return Of("T201", "program", setup, "reason", reason,
		"fix", "return the application of package stream, or `C.CString(app.ToJson())` for one of Wallaroo's own API")
}

// At returns a copy of the diagnostic with a place: a JSON pointer into the topology, and a line of the program. Both
// may be empty.
func (d Diagnostic) At(pointer, file string, line int) Diagnostic {
	d.Pointer, d.File, d.Line = pointer, file, line
	return d
}

// With returns a copy of the diagnostic with a traceback: a stack trace, or the output of a compiler.
func (d Diagnostic) With(traceback string) Diagnostic {
	d.Traceback = traceback
	return d
}

// String formats the diagnostic for display.
func (d Diagnostic) String() string {
	var text strings.Builder
	text.WriteString(d.Code + " " + d.Message)
	declared := d.File
	if d.Line > 0 {
		declared += ":" + strconv.Itoa(d.Line)
	}
	switch {
	case d.Pointer != "" && declared != "":
		text.WriteString("\n  at " + d.Pointer + "  (declared in " + declared + ")")
	case d.Pointer != "" || declared != "":
		text.WriteString("\n  at " + d.Pointer + declared)
	}
	for line := range strings.Lines(strings.TrimRight(d.Traceback, "\n ")) {
		text.WriteString("\n  | " + strings.TrimRight(line, "\n"))
	}
	text.WriteString("\n  fix: " + d.Fix)
	return text.String()
}

// Sort sorts diagnostics by pointer, then by code.
func Sort(found []Diagnostic) {
	slices.SortStableFunc(found, func(a, b Diagnostic) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Code, b.Code))
	})
}

// Error is an error that consists of one or more diagnostics.
type Error []Diagnostic

// Error returns the texts of all diagnostics.
func (e Error) Error() string {
	texts := make([]string, len(e))
	for i, d := range e {
		texts[i] = d.String()
	}
	return strings.Join(texts, "\n")
}

// Shown formats a value for the text of a diagnostic: texts are quoted, and long values are cut to 80 characters.
func Shown(value any) string {
	text := fmt.Sprint(value)
	if s, ok := value.(string); ok {
		text = strconv.Quote(s)
	}
	return Cut(text, shownCharacters)
}

// Cut shortens a text to a number of characters. A shortened text ends with an ellipsis.
func Cut(text string, characters int) string {
	if utf8.RuneCountInString(text) <= characters {
		return text
	}
	return string([]rune(text)[:characters-1]) + "…"
}

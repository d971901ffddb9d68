// Package overlay prepares programs for `wallaroo build`, which passes replacements of their files to the Go compiler.
// In programs in the style of Wallaroo's tutorials, it replaces import "C" by a stand-in, and an empty main function by
// one that starts the worker. The files of the program do not change.
package overlay

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"wallarooapi/internal/diagnostic"
)

const (
	generatedName = "wallaroo_generated.go"
	setupName     = "ApplicationSetup"
	module        = "wallarooapi" // import path of the SDK in programs
)

// starters are the functions that start the worker in a program with its own main function, each with its package.
var starters = []struct{ name, function string }{{"worker", "Main"}, {"goka", "Serve"}}

// Build is the result of Prepare: how to build a program, or why it cannot be built.
type Build struct {
	Replace     map[string]string       `json:"replace"`     // path → path of its replacement for the compiler
	Cgo         []string                `json:"cgo"`         // names of C for which the program needs cgo
	Diagnostics []diagnostic.Diagnostic `json:"diagnostics"` // why the program cannot be built
}

// program is the parsed main package of a user's program.
type program struct {
	directory string
	set       *token.FileSet
	files     []*sourceFile
	setup     *ast.FuncDecl
	main      *ast.FuncDecl
	found     []diagnostic.Diagnostic
}

type sourceFile struct {
	path    string
	content []byte
	syntax  *ast.File
}

// Prepare analyses the program in a directory, and writes changed copies of its files into another directory.
func Prepare(directory, into string) (*Build, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	p, err := parse(directory)
	if err != nil {
		return nil, err
	}
	if len(p.found) == 0 {
		p.check()
	}
	if len(p.found) > 0 {
		return &Build{Diagnostics: p.found}, nil
	}
	return p.write(into)
}

func (p *program) report(d diagnostic.Diagnostic, at token.Pos) {
	position := p.set.Position(at)
	p.found = append(p.found, d.At("", position.Filename, position.Line))
}

// parse parses the files of the package that Go would compile on this platform with cgo.
func parse(directory string) (*program, error) {
	p := &program{directory: directory, set: token.NewFileSet()}
	context := build.Default
	context.CgoEnabled = true
	listed, err := context.ImportDir(directory, 0)
	var syntax scanner.ErrorList
	if none := (*build.NoGoError)(nil); errors.As(err, &none) {
		p.found = []diagnostic.Diagnostic{diagnostic.Of("W407").At("", directory, 0).With("no Go files in " + directory)}
		return p, nil
	} else if err != nil && !errors.As(err, &syntax) {
		p.found = []diagnostic.Diagnostic{diagnostic.Of("W407").At("", directory, 0).With(err.Error())}
		return p, nil
	}
	for _, name := range slices.Concat(listed.GoFiles, listed.CgoFiles) {
		if err := p.parseFile(filepath.Join(directory, name)); err != nil {
			return nil, err
		}
	}
	if len(p.found) == 0 && syntax != nil {
		p.reportSyntax(syntax)
	}
	return p, nil
}

func (p *program) parseFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(p.set, path, content, parser.ParseComments|parser.SkipObjectResolution)
	var wrong scanner.ErrorList
	if errors.As(err, &wrong) {
		p.reportSyntax(wrong)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p.files = append(p.files, &sourceFile{path, content, syntax})
	return nil
}

func (p *program) reportSyntax(wrong scanner.ErrorList) {
	first := wrong[0].Pos
	p.found = append(p.found, diagnostic.Of("W407").At("", first.Filename, first.Line).With(wrong.Error()))
}

// check finds out in which style the program is written, and reports its faults.
func (p *program) check() {
	callsWorker := false
	for _, file := range p.files {
		callsWorker = callsWorker || file.callsWorker()
		for _, declared := range file.syntax.Decls {
			function, ok := declared.(*ast.FuncDecl)
			switch {
			case !ok || function.Recv != nil:
			case function.Name.Name == "main":
				p.main = function
			case function.Name.Name == setupName:
				p.setup = function
			}
		}
	}
	switch {
	case !p.isMain():
		p.reportNoSetup("package "+p.files[0].syntax.Name.Name+", which is not package main,", "make it package main; ")
	case p.setup == nil && (p.main == nil || !callsWorker):
		p.reportNoSetup(p.directory, "")
	case p.setup != nil && p.main != nil && len(p.main.Body.List) > 0:
		name := filepath.Base(p.set.Position(p.main.Pos()).Filename)
		p.report(diagnostic.Of("W409", "file", name), p.main.Pos())
	case p.setup != nil:
		p.checkSetup()
	}
}

func (p *program) isMain() bool {
	return len(p.files) == 0 || p.files[0].syntax.Name.Name == "main"
}

// reportNoSetup reports that a program does not start a worker. The remedy depends on the package with which the
// program declares its application.
func (p *program) reportNoSetup(where, first string) {
	lacks, fix := "call of worker.Main", "call `worker.Main(setup)` in main, with the function that returns the application"
	const serve = "call `goka.Serve(brokers, graphs...)` first in main, or start the program itself, e.g. with `go run .`"
	switch imports := func(path string) bool {
		return slices.ContainsFunc(p.files, func(file *sourceFile) bool { return file.imports(path) })
	}; {
	case imports(module + "/stream"):
	case imports(module + "/application"):
		lacks, fix = setupName, "define `ApplicationSetup` that returns the application, e.g. `return C.CString(app.ToJson())`"
	case imports(module + "/goka"):
		lacks, fix = "call of goka.Serve", serve
	case imports(gokaPath):
		lacks, fix = "call of goka.Serve", "import "+module+"/goka instead of "+gokaPath+", also its packages; "+serve
	default:
		lacks, fix = "call of worker.Main, and no ApplicationSetup", fix+" of package stream; or in Wallaroo's own API define "+
			"`ApplicationSetup` that returns `C.CString(app.ToJson())`"
	}
	found := diagnostic.Of("T201", "program", where, "reason", "it has no "+lacks, "fix", first+fix)
	p.found = append(p.found, found.At("", p.directory, 0))
}

// gokaPath is the import path of Goka itself, which a program imports before it is moved to this system.
const gokaPath = "github.com/lovoo/goka"

// imports reports whether the file imports a package.
func (f *sourceFile) imports(path string) bool {
	return slices.ContainsFunc(f.syntax.Imports, func(imported *ast.ImportSpec) bool {
		return imported.Path.Value == strconv.Quote(path)
	})
}

// callsWorker reports whether the file calls worker.Main or goka.Serve of the SDK.
func (f *sourceFile) callsWorker() bool {
	for _, imported := range f.syntax.Imports {
		for _, starter := range starters {
			if imported.Path.Value != strconv.Quote(module+"/"+starter.name) {
				continue
			}
			name := starter.name
			if imported.Name != nil {
				name = imported.Name.Name
			}
			if len(selections(f.syntax, name)[starter.function]) > 0 {
				return true
			}
		}
	}
	return false
}

// checkSetup reports parameters or results with which the generated main function cannot call ApplicationSetup.
func (p *program) checkSetup() {
	parameters, results := p.setup.Type.Params.NumFields(), p.setup.Type.Results
	if p.arguments() == "" {
		taken := fmt.Sprintf("%d parameters", parameters)
		if parameters == 1 {
			taken = "1 parameter"
		}
		p.report(diagnostic.Of("T202", "kind", "function", "name", setupName, "function", setupName, "actual", taken,
			"expected", 0, "signature", "func ApplicationSetup() *C.char"), p.setup.Pos())
		return
	}
	if results.NumFields() != 1 || p.resultForm() == "" {
		p.report(diagnostic.NoApplication(setupName, "it returns something else than *C.char"), p.setup.Pos())
	}
}

// arguments returns the arguments with which the generated main function calls the setup, or "" if the setup cannot be
// called. A bool parameter is allowed, as in Wallaroo's celsius example: Wallaroo called the setup from C, which
// ignored parameters.
func (p *program) arguments() string {
	parameters := p.setup.Type.Params
	switch parameters.NumFields() {
	case 0:
		return "()"
	case 1:
		if isIdent(parameters.List[0].Type, "bool") {
			return "(false)"
		}
	}
	return ""
}

// resultForm returns Go code that calls the setup and turns its result into a string. If the result of the setup has a
// wrong type, it returns "".
func (p *program) resultForm() string {
	switch result := p.setup.Type.Results.List[0].Type.(type) {
	case *ast.Ident:
		if result.Name == "string" {
			return setupName + p.arguments()
		}
	case *ast.StarExpr:
		if selected, ok := result.X.(*ast.SelectorExpr); ok && isIdent(selected.X, "C") && selected.Sel.Name == "char" {
			return "C.GoString(" + setupName + p.arguments() + ")"
		}
	}
	return ""
}

func isIdent(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}

// selections returns the names X that a file uses as name.X, with the places of their uses.
func selections(file *ast.File, name string) map[string][]*ast.Ident {
	found := map[string][]*ast.Ident{}
	ast.Inspect(file, func(node ast.Node) bool {
		if selected, ok := node.(*ast.SelectorExpr); ok && isIdent(selected.X, name) {
			found[selected.Sel.Name] = append(found[selected.Sel.Name], selected.Sel)
		}
		return true
	})
	return found
}

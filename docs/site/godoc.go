// Command godoc writes the documentation of Go packages as Markdown: a JSON object, import path to text.
//
//	go run docs/site/godoc.go wallarooapi/stream=api/go/stream ...
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"log"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// page is the Markdown of one package.
type page struct {
	strings.Builder
	set   *token.FileSet
	of    *doc.Package
	local map[string]bool // import paths that have a page
}

func main() {
	log.SetFlags(0)
	local := map[string]bool{}
	for _, argument := range os.Args[1:] {
		name, _, _ := strings.Cut(argument, "=")
		local[name] = true
	}
	pages := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, directory, found := strings.Cut(argument, "=")
		if !found {
			log.Fatalf("%q is not IMPORT=DIRECTORY", argument)
		}
		text, err := render(name, directory, local)
		if err != nil {
			log.Fatal(err)
		}
		pages[name] = text
	}
	if err := json.NewEncoder(os.Stdout).Encode(pages); err != nil {
		log.Fatal(err)
	}
}

func render(name, directory string, local map[string]bool) (string, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	of, err := doc.NewFromFiles(set, files, name)
	if err != nil {
		return "", err
	}
	p := &page{set: set, of: of, local: local}
	p.write()
	return p.String(), nil
}

func (p *page) write() {
	fmt.Fprintf(p, "# Package `%s`\n\n```go\nimport %q\n```\n\n", p.of.ImportPath, p.of.ImportPath)
	p.text(p.of.Doc)
	p.examples(p.of.Examples)
	p.values("Constants", p.of.Consts)
	p.values("Variables", p.of.Vars)
	if len(p.of.Funcs) > 0 {
		p.WriteString("## Functions\n\n")
		p.functions(p.of.Funcs, "")
	}
	if len(p.of.Types) > 0 {
		p.WriteString("## Types\n\n")
	}
	for _, t := range p.of.Types {
		p.heading(3, "type "+t.Name, t.Name)
		p.declaration(t.Decl)
		p.text(t.Doc)
		p.examples(t.Examples)
		p.values("", t.Consts)
		p.values("", t.Vars)
		p.functions(t.Funcs, "")
		p.functions(t.Methods, t.Name+".")
	}
}

func (p *page) heading(level int, title, id string) {
	fmt.Fprintf(p, "%s `%s` {#%s}\n\n", strings.Repeat("#", level), title, id)
}

func (p *page) values(title string, values []*doc.Value) {
	if title != "" && len(values) > 0 {
		fmt.Fprintf(p, "## %s\n\n", title)
	}
	for _, value := range values {
		for _, name := range value.Names {
			fmt.Fprintf(p, "<a id=%q></a>", name)
		}
		p.WriteString("\n\n")
		p.declaration(value.Decl)
		p.text(value.Doc)
	}
}

func (p *page) functions(functions []*doc.Func, of string) {
	for _, f := range functions {
		level, title := 3, "func "+f.Name
		if of != "" {
			level, title = 4, "func ("+f.Recv+") "+f.Name
		}
		p.heading(level, title, of+f.Name)
		f.Decl.Body = nil
		p.declaration(f.Decl)
		p.text(f.Doc)
		p.examples(f.Examples)
	}
}

// declaration writes a declaration as gofmt does, without its own comment.
func (p *page) declaration(node ast.Node) {
	p.WriteString("```go\n" + p.source(node) + "\n```\n\n")
}

func (p *page) source(node any) string {
	switch declared := node.(type) {
	case *ast.FuncDecl:
		declared.Doc = nil
	case *ast.GenDecl:
		declared.Doc = nil
	}
	var out bytes.Buffer
	config := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}
	if err := config.Fprint(&out, p.set, node); err != nil {
		log.Fatal(err)
	}
	return out.String()
}

func (p *page) text(text string) {
	made := p.of.Printer()
	made.HeadingLevel = 4
	made.HeadingID = func(*comment.Heading) string { return "" }
	made.DocLinkURL = p.link
	p.Write(made.Markdown(p.of.Parser().Parse(text)))
	p.WriteString("\n")
}

// link returns where the documentation of a name is: on this page, on another one, or that of Go's library.
func (p *page) link(link *comment.DocLink) string {
	name := link.Name
	if link.Recv != "" {
		name = link.Recv + "." + name
	}
	switch {
	case link.ImportPath == "":
		return "#" + name
	case p.local[link.ImportPath]:
		return path.Base(link.ImportPath) + ".md#" + name
	default:
		return link.DefaultURL("https://pkg.go.dev")
	}
}

func (p *page) examples(examples []*doc.Example) {
	for _, example := range examples {
		code := p.source(&printer.CommentedNode{Node: example.Code, Comments: example.Comments})
		if example.Play != nil && example.Suffix == "" {
			code = p.source(example.Play)
		} else if body, err := format.Source([]byte(strings.TrimSuffix(strings.TrimPrefix(code, "{"), "}"))); err == nil {
			code = strings.TrimSpace(string(body))
		}
		title := "Example"
		if example.Suffix != "" {
			title += " (" + example.Suffix + ")"
		}
		fmt.Fprintf(p, "??? example %q\n\n", title)
		p.indented("```go\n" + code + "\n```")
		if example.Output != "" {
			p.indented("Output:\n\n```text\n" + strings.TrimRight(example.Output, "\n") + "\n```")
		}
	}
}

func (p *page) indented(text string) {
	for _, line := range strings.Split(text, "\n") {
		p.WriteString(strings.TrimRight("    "+line, " ") + "\n")
	}
	p.WriteString("\n")
}

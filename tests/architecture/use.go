// Command use names what is public in packages of the module that it is run in and used by no example of its package, and examples
// that are not run. It looks at example*_test.go. Who uses a function uses the types of its parameters and results, too.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

type listed struct {
	ImportPath, Dir, Export, ForTest string
	XTestGoFiles                     []string
	DepOnly                          bool
}

func main() {
	log.SetFlags(0)
	packages := list(os.Args[1:])
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range packages {
		if !p.DepOnly && p.ForTest == "" && !strings.HasSuffix(p.ImportPath, ".test") {
			check(p, files, imports)
		}
	}
}

// list returns packages and all that they and their tests import.
func list(patterns []string) (packages []listed) {
	arguments := append([]string{"list", "-export", "-deps", "-test", "-json"}, patterns...)
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	failed(err)
	for decoder := json.NewDecoder(strings.NewReader(string(output))); decoder.More(); {
		var p listed
		failed(decoder.Decode(&p))
		packages = append(packages, p)
	}
	return packages
}

// check prints what is wrong with the examples of a package.
func check(p listed, files *token.FileSet, imports types.Importer) {
	var all, examples []*ast.File
	for _, name := range p.XTestGoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		failed(err)
		all = append(all, file)
		if strings.HasPrefix(name, "example") {
			examples = append(examples, file)
		}
	}
	for _, example := range doc.Examples(examples...) {
		if example.Output == "" && !example.EmptyOutput {
			fmt.Printf("%s: Example%s is not run: it has no output\n", p.ImportPath, example.Name)
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	_, err := (&types.Config{Importer: imports}).Check(p.ImportPath+"_test", files, all, info)
	failed(err)
	used, mentioned := usesOf(examples, info)
	public, err := imports.Import(p.ImportPath)
	failed(err)
	for _, object := range surface(public) {
		_, isType := object.(*types.TypeName)
		name := regexp.MustCompile(regexp.QuoteMeta(full(object)) + `\b`)
		if !used[object] && !(isType && name.MatchString(mentioned)) {
			fmt.Println(full(object) + ": no example of its package uses it")
		}
	}
}

// usesOf returns what files use, and how the compiler describes it: with the types of parameters and results.
func usesOf(examples []*ast.File, info *types.Info) (used map[types.Object]bool, mentioned string) {
	used = map[types.Object]bool{}
	for _, file := range examples {
		ast.Inspect(file, func(node ast.Node) bool {
			name, isName := node.(*ast.Ident)
			object := info.Uses[name]
			if !isName || object == nil {
				return true
			}
			if function, is := object.(*types.Func); is {
				object = function.Origin()
			}
			used[object] = true
			mentioned += object.String() + "\n"
			return true
		})
	}
	return used, mentioned
}

// surface returns the public names of a package.
func surface(p *types.Package) (public []types.Object) {
	for _, name := range p.Scope().Names() {
		if object := p.Scope().Lookup(name); object.Exported() {
			public = append(public, object)
		}
	}
	return public
}

func full(object types.Object) string {
	return object.Pkg().Path() + "." + object.Name()
}

func failed(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

package overlay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wallarooapi/internal/overlay"
)

const tutorial = `package main

import (
	"C"
	"fmt"
)

type Word struct{ Text string }

type (
	Namer interface{ Name() string }
	List[T any] struct{ items []T }
	Alias = Word
)

//export ApplicationSetup
func ApplicationSetup() *C.char { fmt.Print(); return C.CString("C.char") }

func main() {}
`

// prepare writes a program of one file, app.go, and prepares it. original is the path of the file.
func prepare(t *testing.T, content string) (result *overlay.Build, original string) {
	t.Helper()
	directory := t.TempDir()
	original = filepath.Join(directory, "app.go")
	if err := os.WriteFile(original, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := overlay.Prepare(directory, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return result, original
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestATutorialGetsStandIns(t *testing.T) {
	result, original := prepare(t, tutorial)
	if len(result.Diagnostics)+len(result.Cgo) > 0 || len(result.Replace) != 2 {
		t.Fatalf("%+v", result)
	}
	want := "//line " + original + ":1:1\n" + strings.NewReplacer(
		`"C"`+"\n", `C "wallarooapi/cstring"`+"\n", "*C.char", "*C.Char", "func main()", "func _   ()",
	).Replace(tutorial)
	if got := read(t, result.Replace[original]); got != want {
		t.Errorf("the copy is\n%s\nwant\n%s", got, want)
	}
	generated := read(t, result.Replace[filepath.Join(filepath.Dir(original), "wallaroo_generated.go")])
	for _, part := range []string{"C.GoString(ApplicationSetup())", "RegisterType((*Word)(nil))", "func main() {"} {
		if !strings.Contains(generated, part) {
			t.Errorf("%q is missing in\n%s", part, generated)
		}
	}
	for _, part := range []string{"Namer", "List", "Alias"} {
		if strings.Contains(generated, part) {
			t.Errorf("%q is in\n%s", part, generated)
		}
	}
}

func TestASetupMayDeclareABool(t *testing.T) {
	result, original := prepare(t, strings.Replace(tutorial, "ApplicationSetup()", "ApplicationSetup(showHelp bool)", 1))
	if len(result.Diagnostics) > 0 {
		t.Fatalf("%+v", result)
	}
	generated := read(t, result.Replace[filepath.Join(filepath.Dir(original), "wallaroo_generated.go")])
	if !strings.Contains(generated, "C.GoString(ApplicationSetup(false))") {
		t.Errorf("the setup is not called in\n%s", generated)
	}
}

func TestMoreOfCKeepsCgo(t *testing.T) {
	result, original := prepare(t, strings.Replace(tutorial, "fmt.Print()", "fmt.Print(C.int(1), C.puts)", 1))
	if len(result.Cgo) != 2 || result.Cgo[0] != "C.int" || result.Cgo[1] != "C.puts" {
		t.Errorf("%v", result.Cgo)
	}
	if got := read(t, result.Replace[original]); strings.Contains(got, "cstring") || !strings.Contains(got, "func _   ()") {
		t.Errorf("the copy is\n%s", got)
	}
}

func TestANewProgramIsBuiltAsItIs(t *testing.T) {
	for _, program := range []string{
		"import w \"wallarooapi/worker\"\n\ntype T int\n\nfunc main() { w.Main(nil) }\n",
		"import \"wallarooapi/goka\"\n\ntype T int\n\nfunc main() { goka.Serve(nil) }\n",
	} {
		result, original := prepare(t, "package main\n\n"+program)
		if _, replaced := result.Replace[original]; replaced || len(result.Replace) != 1 || len(result.Diagnostics) > 0 {
			t.Errorf("%+v", result)
		}
	}
}

func TestWhatCannotBeBuilt(t *testing.T) {
	for name, c := range map[string]struct {
		content, code string
		line          int
	}{
		"no setup":          {"package main\n\nfunc main() {}\n", "T201", 0},
		"not a program":     {"package words\n\nfunc ApplicationSetup() string { return \"\" }\n", "T201", 0},
		"main not empty":    {strings.Replace(tutorial, "func main() {}", "func main() { println() }", 1), "W409", 19},
		"parameters":        {strings.Replace(tutorial, "ApplicationSetup()", "ApplicationSetup(x int)", 1), "T202", 17},
		"two parameters":    {strings.Replace(tutorial, "ApplicationSetup()", "ApplicationSetup(x, y bool)", 1), "T202", 17},
		"another result":    {strings.Replace(tutorial, "*C.char {", "int {", 1), "T201", 17},
		"a syntax error":    {strings.Replace(tutorial, "fmt.Print()", "fmt.Print(", 1), "W407", 17},
		"no program at all": {"", "W407", 1},
	} {
		result, original := prepare(t, c.content)
		if len(result.Diagnostics) != 1 {
			t.Errorf("%s: %+v", name, result)
			continue
		}
		found := result.Diagnostics[0]
		if found.Code != c.code || found.Line != c.line || !strings.HasPrefix(original, found.File) {
			t.Errorf("%s: %+v; want %s at line %d", name, found, c.code, c.line)
		}
	}
	one, _ := prepare(t, strings.Replace(tutorial, "ApplicationSetup()", "ApplicationSetup(x int)", 1))
	if message := one.Diagnostics[0].Message; !strings.HasSuffix(message, "ApplicationSetup takes 1 parameter; expected 0") {
		t.Error(message)
	}
	imports := "\n\nimport \"wallarooapi/stream\"\n\nvar app = stream.New(\"x\")\n\nfunc main() {}\n"
	for name, first := range map[string]string{"main": "", "words": "make it package main; "} {
		found, _ := prepare(t, "package "+name+imports)
		if d := found.Diagnostics[0]; d.Code != "T201" || !strings.HasPrefix(d.Fix, first+"call `worker.Main(setup)` in main") {
			t.Error(d)
		}
	}
	const serve = "call `goka.Serve(brokers, graphs...)` first in main, or start the program itself, e.g. with `go run .`"
	for content, fix := range map[string]string{
		"func main() {}": "call `worker.Main(setup)` in main, with the function that returns the application of package stream; " +
			"or in Wallaroo's own API define `ApplicationSetup` that returns `C.CString(app.ToJson())`",
		"import \"wallarooapi/application\"\n\nvar app = application.MakeApplication(\"x\")\n\nfunc main() {}": "define `ApplicationSetup` " +
			"that returns the application, e.g. `return C.CString(app.ToJson())`",
		"import \"wallarooapi/goka\"\n\nfunc main() { goka.NewProcessor(nil, nil) }": serve,
		"import _ \"github.com/lovoo/goka\"\n\nfunc main() {}": "import wallarooapi/goka instead of github.com/lovoo/goka, also its packages; " +
			serve,
	} {
		found, _ := prepare(t, "package main\n\n"+content+"\n")
		if d := found.Diagnostics[0]; d.Code != "T201" || d.Fix != fix {
			t.Error(d)
		}
	}
	result, err := overlay.Prepare(t.TempDir(), t.TempDir())
	if err != nil || len(result.Diagnostics) != 1 || !strings.HasPrefix(result.Diagnostics[0].Traceback, "no Go files in ") {
		t.Errorf("%+v, %v", result, err)
	}
}

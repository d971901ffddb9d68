package goka

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"

	theirs "github.com/lovoo/goka"

	"wallarooapi/goka/codec"
)

// both makes the same graph with this package and with Goka's, or returns what they panic with.
func both(group Group, ours []Edge, gokas []theirs.Edge) (mine *GroupGraph, his *theirs.GroupGraph, panics [2]string) {
	try := func(i int, make func()) {
		defer func() {
			if recovered := recover(); recovered != nil {
				panics[i] = fmt.Sprint(recovered)
			}
		}()
		make()
	}
	try(0, func() { mine = DefineGroup(group, ours...) })
	try(1, func() { his = theirs.DefineGroup(group, gokas...) })
	return mine, his, panics
}

// shown is the content of a graph, as its methods return it.
func shown(group Group, edges map[string][]string, single ...theirs.Edge) string {
	text := fmt.Sprint(group, edges)
	for _, e := range single {
		if e == nil {
			text += " none"
			continue
		}
		text += fmt.Sprint(" ", e, e.Topic(), e.Codec())
	}
	return text
}

func TestGraphsAreAsGokas(t *testing.T) {
	s, callback := new(codec.String), func(Context, any) {}
	cases := map[string]func(in func(Stream, Codec, ProcessCallback) Edge, ins func(Streams, Codec, ProcessCallback) Edge,
		loop func(Codec, ProcessCallback) Edge, join, lookup func(Table, Codec) Edge, persist func(Codec) Edge,
		out func(Stream, Codec) Edge, visit func(string, ProcessCallback) Edge) []Edge{
		"all": func(in func(Stream, Codec, ProcessCallback) Edge, ins func(Streams, Codec, ProcessCallback) Edge,
			loop func(Codec, ProcessCallback) Edge, join, lookup func(Table, Codec) Edge, persist func(Codec) Edge,
			out func(Stream, Codec) Edge, visit func(string, ProcessCallback) Edge) []Edge {
			return []Edge{ins(Streams{"b", "a"}, s, callback), in("c", s, callback), loop(s, callback), join("t", s), lookup("l", s),
				persist(s), out("o", s), out("o", s), visit("v", callback), ins(nil, s, callback)}
		},
		"nothing": func(func(Stream, Codec, ProcessCallback) Edge, func(Streams, Codec, ProcessCallback) Edge,
			func(Codec, ProcessCallback) Edge, func(Table, Codec) Edge, func(Table, Codec) Edge, func(Codec) Edge,
			func(Stream, Codec) Edge, func(string, ProcessCallback) Edge) []Edge {
			return nil
		},
	}
	// Faults of a graph, by kind of edge.
	for name, edges := range map[string]string{
		"no topic": "in:", "twice": "in:a in:a", "twice in a list": "ins:a in:a", "two loops": "in:a loop loop", "two tables": "in:a persist persist",
		"the loop as input": "in:g-loop", "the table as output": "in:a out:g-table", "the table joined": "in:a join:g-table",
		"the loop looked up": "in:a lookup:g-loop", "visits without state": "in:a visit:v", "an input that is joined": "in:a join:a",
	} {
		cases[name] = func(in func(Stream, Codec, ProcessCallback) Edge, ins func(Streams, Codec, ProcessCallback) Edge,
			loop func(Codec, ProcessCallback) Edge, join, lookup func(Table, Codec) Edge, persist func(Codec) Edge,
			out func(Stream, Codec) Edge, visit func(string, ProcessCallback) Edge) (made []Edge) {
			for _, word := range strings.Fields(edges) {
				kind, topic, _ := strings.Cut(word, ":")
				switch kind {
				case "in":
					made = append(made, in(Stream(topic), s, callback))
				case "ins":
					made = append(made, ins(Streams{Stream(topic)}, s, callback))
				case "loop":
					made = append(made, loop(s, callback))
				case "persist":
					made = append(made, persist(s))
				case "join":
					made = append(made, join(Table(topic), s))
				case "lookup":
					made = append(made, lookup(Table(topic), s))
				case "out":
					made = append(made, out(Stream(topic), s))
				case "visit":
					made = append(made, visit(topic, callback))
				}
			}
			return made
		}
	}
	for name, make := range cases {
		ours := make(Input, Inputs, Loop, Join, Lookup, Persist, Output, Visitor)
		gokas := make(theirs.Input, theirs.Inputs, theirs.Loop, theirs.Join, theirs.Lookup, theirs.Persist, theirs.Output, theirs.Visitor)
		mine, his, panics := both("g", ours, gokas)
		if panics[0] != panics[1] {
			t.Errorf("%s: panics %q", name, panics)
		}
		if mine == nil || his == nil {
			continue
		}
		for range 2 { // once more with a clone
			a := shown(mine.Group(), map[string][]string{"in": mine.InputStreams().Topics(), "join": mine.JointTables().Topics(),
				"lookup": mine.LookupTables().Topics(), "out": mine.OutputStreams().Topics(), "all": mine.AllEdges().Topics()},
				mine.LoopStream(), mine.GroupTable())
			b := shown(his.Group(), map[string][]string{"in": his.InputStreams().Topics(), "join": his.JointTables().Topics(),
				"lookup": his.LookupTables().Topics(), "out": his.OutputStreams().Topics(), "all": his.AllEdges().Topics()},
				his.LoopStream(), his.GroupTable())
			if a != b || fmt.Sprint(mine.Validate()) != fmt.Sprint(his.Validate()) {
				t.Errorf("%s: %s, %v\n  not %s, %v", name, a, mine.Validate(), b, his.Validate())
			}
			mine, his = DefineGroup(mine.Group(), mine.AllEdges()...), theirs.DefineGroup(his.Group(), his.AllEdges()...)
		}
	}
}

func TestSuffixesCountWhenAGroupIsDefined(t *testing.T) {
	defer ResetSuffixes()
	SetTableSuffix("-t")
	SetLoopSuffix("-l")
	graph := counted()
	ResetSuffixes()
	if graph.tableTopic != "g-t" || graph.loopTopic != "g-l" || graph.GroupTable().Topic() != "g-t" || graph.LoopStream().Topic() != "g-l" {
		t.Errorf("%+v", graph)
	}
}

func counted(edges ...Edge) *GroupGraph {
	none := func(Context, any) {}
	return DefineGroup("g", append(edges, Input("in", new(codec.String), none), Loop(new(codec.String), none), Persist(new(codec.Int64)))...)
}

// exported returns the exported names of packages, by the path of the package.
func exported(t *testing.T, paths []string) map[string][]string {
	listed, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(listed)) {
		path, directory, _ := strings.Cut(strings.TrimSpace(line), " ")
		packages, err := parser.ParseDir(token.NewFileSet(), directory, func(file fs.FileInfo) bool {
			return !strings.HasSuffix(file.Name(), "_test.go")
		}, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, parsed := range packages {
			for _, file := range parsed.Files {
				for _, declared := range file.Decls {
					all[path] = append(all[path], namesOf(declared)...)
				}
			}
		}
	}
	return all
}

func namesOf(declared ast.Decl) (names []string) {
	switch d := declared.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func TestEveryNameOfGokaIsHere(t *testing.T) {
	const ours, gokas = "wallarooapi/goka", "github.com/lovoo/goka"
	folders := []string{"", "/codec", "/storage", "/storage/redis", "/tester", "/multierr", "/web/index", "/web/monitor", "/web/query",
		"/web/actions", "/web/templates"}
	var paths []string
	for _, folder := range folders {
		paths = append(paths, ours+folder, gokas+folder)
	}
	names := exported(t, paths)
	for _, folder := range folders {
		if len(names[gokas+folder]) == 0 {
			t.Errorf("no names in goka%s", folder)
		}
		for _, name := range names[gokas+folder] {
			if ast.IsExported(name) && !slices.Contains(names[ours+folder], name) {
				t.Errorf("goka%s lacks %s", folder, name)
			}
		}
	}
}

func TestNamesThatKafkaDoesNotTakeAreRefused(t *testing.T) {
	none := func(Context, any) {}
	s := new(codec.String)
	for wanted, graph := range map[string]*GroupGraph{
		"":                                   DefineGroup("my-group", Input("in.1_2", s, none), Persist(s)),
		`"my group-table"`:                   DefineGroup("my group", Input("in", s, none), Persist(s)),
		`"größe-loop"`:                       DefineGroup("größe", Input("in", s, none), Loop(s, none)),
		`"a/b"`:                              DefineGroup("g", Input("in", s, none), Output("a/b", s)),
		`".."`:                               DefineGroup("g", Input("..", s, none)),
		`"` + strings.Repeat("x", 250) + `"`: DefineGroup("g", Input("in", s, none), Lookup(Table(strings.Repeat("x", 250)), s)),
	} {
		_, err := newGroup(graph, newOptions(graph, nil), context.Background)
		if (err == nil) != (wanted == "") || err != nil && !strings.Contains(err.Error(), "no topic of Kafka has the name "+wanted+";") {
			t.Errorf("%s: %v", wanted, err)
		}
	}
}

package wallarootest

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/topology"
)

// named has the three texts by which a test can name a source or sink: its name, its path, and its address or topic.
type named struct{ name, path, place string }

func (n named) String() string {
	if n.place == "" {
		return fmt.Sprintf("%q (%s)", n.name, n.path)
	}
	return fmt.Sprintf("%q (%s, %s)", n.name, n.path, n.place)
}

// source returns the source with a name. If there is no such source, the test fails, and source returns nil.
func (a *App) source(name string) *declaration.Source {
	a.t.Helper()
	var all []*declaration.Source
	var names []named
	for source := range a.declared.Sources() {
		all, names = append(all, source), append(names, named{source.Name, source.Path, placeOf(source.Edge)})
	}
	if at := a.find("source", name, names); at >= 0 {
		return all[at]
	}
	return nil
}

// sink returns the sink with a name. If there is no such sink, the test fails, and sink returns nil.
func (a *App) sink(name string) *declaration.Sink {
	a.t.Helper()
	var all []*declaration.Sink
	var names []named
	for sink := range a.declared.Sinks() {
		all, names = append(all, sink), append(names, named{sink.Name, sink.Path, placeOf(sink.Edge)})
	}
	if at := a.find("sink", name, names); at >= 0 {
		return all[at]
	}
	return nil
}

// find returns the index of the item with a name. The test fails, and find returns -1, unless exactly one item matches.
func (a *App) find(what, name string, all []named) int {
	a.t.Helper()
	at, count := -1, 0
	for i, each := range all {
		if name == each.name || name == each.path || name == each.place {
			at = i
			count++
		}
	}
	if count == 1 {
		return at
	}
	shown := make([]string, len(all))
	for i, each := range all {
		shown[i] = each.String()
	}
	slices.Sort(shown)
	if count == 0 {
		a.t.Fatalf("wallarootest: the application has no %s %q; it has %s", what, name, strings.Join(shown, ", "))
	} else {
		a.t.Fatalf("wallarootest: the application has %d %ss %q; name one by its path or address: %s", count, what, name,
			strings.Join(shown, ", "))
	}
	return -1
}

// placeOf returns the address or topic of a source or sink, or "" if it has neither.
func placeOf(edge topology.Edge) string {
	switch of := edge.(type) {
	case *topology.TCP:
		return net.JoinHostPort(of.Host, of.Port)
	case *topology.Connector:
		return net.JoinHostPort(of.Host, of.Port)
	case *topology.ConnectorSink:
		return net.JoinHostPort(of.Host, of.Port)
	case *topology.Kafka:
		return of.Topic
	}
	return ""
}

package wallarootest

import (
	"fmt"
	"iter"
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
	return find(a, "source", name, a.declared.Sources(), func(s *declaration.Source) named {
		return named{s.Name, s.Path, placeOf(s.Edge)}
	})
}

// sink returns the sink with a name. If there is no such sink, the test fails, and sink returns nil.
func (a *App) sink(name string) *declaration.Sink {
	a.t.Helper()
	return find(a, "sink", name, a.declared.Sinks(), func(s *declaration.Sink) named {
		return named{s.Name, s.Path, placeOf(s.Edge)}
	})
}

// find returns the source or sink with a name. The test fails, and find returns nil, unless exactly one matches.
func find[P any](a *App, what, name string, all iter.Seq[*P], texts func(*P) named) *P {
	a.t.Helper()
	var found []*P
	var shown []string
	for each := range all {
		n := texts(each)
		if name == n.name || name == n.path || name == n.place {
			found = append(found, each)
		}
		shown = append(shown, n.String())
	}
	if len(found) == 1 {
		return found[0]
	}
	slices.Sort(shown)
	if len(found) == 0 {
		a.t.Fatalf("wallarootest: the application has no %s %q; it has %s", what, name, strings.Join(shown, ", "))
	} else {
		a.t.Fatalf("wallarootest: the application has %d %ss %q; name one by its path or address: %s", len(found), what, name,
			strings.Join(shown, ", "))
	}
	return nil
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

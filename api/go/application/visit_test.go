package application_test

import (
	"slices"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/example"
)

// visited is a state computation with visits.
type visited struct {
	example.CountWords
	names []string
}

func (v *visited) Visits() []string { return v.names }

// visiting has the visitor, too.
type visiting struct{ visited }

func (*visiting) Visit(*wa.Visit, interface{}) (interface{}, bool) { return nil, true }

func withVisits(computation wa.StateComputation) *application.Application {
	app := application.MakeApplication("Visits")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToStatePartition(computation, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	return app
}

func TestVisitsAreInTheDocument(t *testing.T) {
	text := withVisits(&visiting{visited{names: []string{"show", "reset"}}}).ToJson()
	if !strings.Contains(text, "\"visits\": [\n            \"show\",\n            \"reset\"\n          ],\n          \"codec\"") {
		t.Error(text)
	}
	if text := withVisits(&visiting{}).ToJson(); strings.Contains(text, "visits\"") {
		t.Error(text)
	}
}

func TestMistakesWithVisitsAreFound(t *testing.T) {
	for _, each := range []struct {
		computation wa.StateComputation
		codes       []string
	}{
		{&visited{names: []string{"show"}}, []string{"T223"}},
		{&visiting{visited{names: []string{"show", "show"}}}, []string{"T207"}},
		{&visiting{visited{names: []string{"a\n"}}}, []string{"T210"}},
	} {
		text := withVisits(each.computation).ToJson()
		for _, code := range each.codes {
			if strings.Count(text, "\""+code+"\"") != 1 {
				t.Errorf("%v: %s", slices.Clone(each.codes), text)
			}
		}
	}
}

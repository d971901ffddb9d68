package application_test

import (
	"strings"
	"testing"

	wa "wallarooapi"
	app "wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/example"
)

func TestALibraryOffersWhatBuildersBuild(t *testing.T) {
	library := app.MakeLibrary().
		OfferState(example.CountWords{}, example.TotalsBuilder{}, "string", "json").
		OfferStateMulti(&checkOrder{}, &symbolDataBuilder{}, "string", "string").
		Offer(example.Split{}, "string", "string")
	result, ok := declaration.Lookup(library.ToJson())
	if !ok || len(result.Found) > 0 {
		t.Fatalf("findings: %v", result.Found)
	}
	for _, want := range []string{
		`"name": "count",
      "kind": "state_computation",
      "input": "string",
      "output": "json",`,
		`"kind": "state_computation_multi"`, `"symbol": "example.Split"`, `"components": []`,
	} {
		if !strings.Contains(result.Text, want) {
			t.Errorf("%s\ndoes not have\n%s", result.Text, want)
		}
	}
}

func TestMistakesOfALibrary(t *testing.T) {
	library := app.MakeLibrary().Offer(nil, "json", "json").Offer(notAComputation{}, "json", "json").
		OfferState(nil, nil, "json", "json").Offer(example.Split{}, "string", "text")
	result, _ := declaration.Lookup(library.ToJson())
	text := ""
	for _, found := range result.Found {
		text += found.String() + "\n"
	}
	for _, want := range []string{
		"T207 Offer: parameter builder is nil", "T223 the result of Build of application_test.notAComputation",
		"T207 OfferState: parameter sc is nil", "T207 OfferState: parameter sb is nil",
		`T207 Offer: parameter output is "text"; expected one of "bytes", "string", "int64", "float64", "json"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\ndoes not have\n%s", text, want)
		}
	}
}

func TestAComponentOfAnotherProgramIsAStep(t *testing.T) {
	scorer := wa.OtherProgram("scorer", "scorer.py")
	a := app.MakeApplication("Scores")
	a.NewPipeline("Scores", app.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(scorer.ComputationMulti("score", "string", "json")).
		To(scorer.Computation("best", "json", "string")).OnError("fail").
		ToSink(app.MakeTCPSinkConfig("127.0.0.1", "7002", &orderEncoder{}))
	result, ok := declaration.Lookup(a.ToJson())
	if !ok || len(result.Found) > 0 {
		t.Fatalf("findings: %v", result.Found)
	}
	if result.Programs["scorer"] != "scorer.py" {
		t.Errorf("programs are %v", result.Programs)
	}
	if want := `"codec": "string",
          "worker": "scorer",
          "component": "best",
          "on_error": "fail"`; !strings.Contains(result.Text, want) {
		t.Errorf("%s\ndoes not have\n%s", result.Text, want)
	}
}

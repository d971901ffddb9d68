package application_test

import (
	"strings"
	"testing"

	wa "wallarooapi"
	app "wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/testdata/example"
)

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

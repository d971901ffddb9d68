package application_test

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	wa "wallarooapi"
	app "wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/testdata/example"
)

// These are objects of a program for Wallaroo 0.4: keys are numbers, and state builders have a name.

type orderDecoder struct{}

func (*orderDecoder) HeaderLength() uint64          { return 2 }
func (*orderDecoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint16(b)) }
func (*orderDecoder) Decode(b []byte) interface{}   { return string(b) }

type symbolPartition struct{}

func (*symbolPartition) Partition(data interface{}) uint64 { return uint64(len(data.(string))) }

type symbolData struct{ Price float64 }

type symbolDataBuilder struct{}

func (*symbolDataBuilder) Name() string       { return "symbol data" }
func (*symbolDataBuilder) Build() interface{} { return &symbolData{} }

type checkOrder struct{}

func (*checkOrder) Name() string { return "check order" }
func (*checkOrder) Compute(data, state interface{}) ([]interface{}, bool) {
	return []interface{}{data}, true
}

type updateMarketData struct{}

func (*updateMarketData) Name() string { return "update market data" }
func (*updateMarketData) Compute(data, state interface{}) (interface{}, bool) {
	return nil, true
}

type orderEncoder struct{}

func (*orderEncoder) Encode(d interface{}) []byte { return []byte(d.(string)) }

func marketSpread() *app.Application {
	application := app.MakeApplication("market-spread")
	keys := []uint64{0, 7, 18446744073709551615}
	application.NewPipeline("Orders", app.MakeTCPSourceConfig("127.0.0.1", "7010", &orderDecoder{})).
		ToStatePartitionMulti(&checkOrder{}, &symbolDataBuilder{}, "symbol-data", &symbolPartition{}, keys).
		ToSinks(app.MakeTCPSinkConfig("127.0.0.1", "7002", &orderEncoder{}), app.MakeTCPSinkConfig("::1", "0", &orderEncoder{}))
	application.NewPipeline("Market Data", app.MakeTCPSourceConfig("127.0.0.1", "7011", &orderDecoder{})).
		ToStatePartition(&updateMarketData{}, &symbolDataBuilder{}, "symbol-data", &symbolPartition{}, keys).
		Done()
	return application
}

// builds is a builder that returns its value.
type builds struct{ state any }

func (b builds) Build() interface{} { return b.state }

func TestAProgramForWallaroo04(t *testing.T) {
	application := marketSpread()
	if err := application.Check(); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Pipelines []struct {
			Sources []struct{ Framing struct{ Kind string } }
			Steps   []struct {
				Path, Name, Kind string
				Inputs           []string
				State            struct {
					Name string
					Key  struct {
						Kind, Unknown string
						Values        []json.Number
					}
				}
			}
			Sinks []struct{ Path, Name string }
		}
	}
	text := application.ToJson()
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	orders, market := document.Pipelines[0], document.Pipelines[1]
	step := orders.Steps[0]
	if step.Kind != "state_computation_multi" || step.Name != "check order" || step.Inputs[0] != "0/sources/0" {
		t.Errorf("the step is %+v", step)
	}
	key := step.State.Key
	if key.Unknown != "dead_letter" || len(key.Values) != 3 || key.Values[2] != "18446744073709551615" {
		t.Errorf("the key is %+v", key)
	}
	if orders.Sources[0].Framing.Kind != "u16be" || len(orders.Sinks) != 2 || orders.Sinks[1].Name != "Orders-2" {
		t.Errorf("the pipeline is %+v", orders)
	}
	if !strings.Contains(text, `"sinks": []`) || market.Steps[0].Kind != "state_computation" {
		t.Errorf("the pipeline is %+v", market)
	}
}

func TestABuilderThatIsUsedTwiceMakesABranch(t *testing.T) {
	application := app.MakeApplication("branch")
	fork := application.NewPipeline("p", app.MakeTCPSourceConfig("h", "1", example.Lines{})).ToMulti(example.Split{})
	fork.ToMulti(example.Split{}).Done()
	fork.ToSink(app.MakeTCPSinkConfig("h", "2", &orderEncoder{}))
	result, _ := declaration.Lookup(application.ToJson())
	if len(result.Found) > 0 || result.Application.Pipelines[0].Steps[1].Inputs[0] != "0/steps/0" || result.Application.Pipelines[0].Sinks[0].Inputs[0] != "0/steps/0" {
		t.Errorf("found %v", result.Found)
	}
}

type keyOfString struct{}

func (keyOfString) Partition(interface{}) string { return "" }

type unexported struct {
	total int
}

func (u *unexported) Total() int { return u.total }

type unexportedBuilder struct{}

type makes func() any

func (m makes) Build() interface{} { return m() }

func (unexportedBuilder) Build() interface{} { return &unexported{total: 1} }

type notAComputation struct{}

func (notAComputation) Build() interface{} { return 1 }

type unframed struct{}

func (unframed) Decode([]byte) interface{} { return nil }

type longHeader struct{ example.Lines }

func (longHeader) HeaderLength() uint64 { return 65 }

func TestEveryMistakeIsFoundAtOnce(t *testing.T) {
	sink := app.MakeTCPSinkConfig("127.0.0.1", "7002", &orderEncoder{})
	source := func() app.SourceConfig { return app.MakeTCPSourceConfig("127.0.0.1", "0", example.Lines{}) }
	cases := map[string]struct {
		declare func(*app.Application)
		want    []string
	}{
		"no sink": {func(a *app.Application) { a.NewPipeline("p", source()).Done() }, []string{`T204 application "a" has no sink`}},
		"no end": {func(a *app.Application) {
			a.NewPipeline("p", source()).ToSink(sink)
			a.NewPipeline("q", source()).ToMulti(example.Split{})
		}, []string{`T204 pipeline "q" has no end after "split"`}},
		"names": {func(a *app.Application) { a.NewPipeline("a\nb", source()).ToSink(sink) },
			[]string{`T210 pipeline name "a\nb" is not usable; it has the control character U+000A`}},
		"addresses": {func(a *app.Application) {
			a.NewPipeline("p", app.MakeTCPSourceConfig("h", "7010", example.Lines{})).ToSink(app.MakeTCPSinkConfig("", "x", &orderEncoder{}))
		}, []string{`T211 sink address ":x" is not usable; the host is empty`}},
		"states": {func(a *app.Application) {
			keys := [][]byte{[]byte("a")}
			a.NewPipeline("p", source()).
				ToStatePartitionWithKeys(example.CountWords{}, example.TotalsBuilder{}, "s", example.FirstLetter{}, keys).
				ToStatePartition(example.CountWords{}, &symbolDataBuilder{}, "s", &symbolPartition{}, []uint64{1}).ToSink(sink)
		}, []string{`T205 state "s" is declared with *example.Totals and with *application_test.symbolData`}},
		"states of one name": {func(a *app.Application) {
			type symbolData struct{ Price string }
			a.NewPipeline("p", source()).
				ToStatePartition(example.CountWords{}, &symbolDataBuilder{}, "s", example.FirstLetter{}).
				ToStatePartition(example.CountWords{}, makes(func() any { return &symbolData{} }), "s", example.FirstLetter{}).ToSink(sink)
		}, []string{`T205 state "s" is declared with *application_test.symbolData and with *application_test.symbolData`}},
		"partition": {func(a *app.Application) {
			a.NewPipeline("p", source()).ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "s", keyOfString{}).ToSink(sink)
		}, []string{`T208 state "s": the partition function of application_test.keyOfString returns string; expected []byte or uint64`}},
		"no partition": {func(a *app.Application) {
			a.NewPipeline("p", source()).ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "s", 1).ToSink(sink)
		}, []string{"T223 partition function int has no method Partition"}},
		"state without bytes": {func(a *app.Application) {
			a.NewPipeline("p", source()).ToStatePartition(example.CountWords{}, unexportedBuilder{}, "s", example.FirstLetter{}).ToSink(sink)
		}, []string{"C504 count: *application_test.unexported cannot be serialized; field total of application_test.unexported is not exported"}},
		"states that no computation can change": {func(a *app.Application) {
			for name, state := range map[string]any{"a": symbolData{}, "b": map[string]int(nil), "c": (*symbolData)(nil), "d": 5, "e": []int{1}} {
				a.NewPipeline(name, source()).ToStatePartition(example.CountWords{}, builds{state}, name, example.FirstLetter{}).ToSink(sink)
			}
			for name, state := range map[string]any{"f": &symbolData{}, "g": map[string]int{}, "h": struct{}{}} {
				a.NewPipeline(name, source()).ToStatePartition(example.CountWords{}, builds{state}, name, example.FirstLetter{}).ToSink(sink)
			}
		}, []string{
			"T207 Build of application_test.builds: parameter result is application_test.symbolData, of which each call gets a copy; expected a pointer, or a map that is made",
			"T207 Build of application_test.builds: parameter result is a nil map[string]int;",
			"T207 Build of application_test.builds: parameter result is a nil *application_test.symbolData;",
			"T207 Build of application_test.builds: parameter result is int, of which each call gets a copy;",
			"T207 Build of application_test.builds: parameter result is []int, of which each call gets a copy;",
			"T207 Build of application_test.builds: parameter result is the same *application_test.symbolData for each key; expected a new state in each call",
			"T207 Build of application_test.builds: parameter result is the same map[string]int for each key;",
		}},
		"policy of nothing": {func(a *app.Application) {
			a.NewPipeline("p", source()).ToMulti(example.Split{}).Output("words").OnError("never").ToSink(sink)
		}, []string{`T207 OnError: parameter policy is "never" for no source, step or sink; expected a call directly after one of them`,
			`T204 pipeline "p" has no end after "split"`, `T212 ToSink cannot follow the end of pipeline "p"`, `T273 step "split" has no output "words"`}},
		"a nil broker": {func(a *app.Application) {
			a.NewPipeline("p", app.MakeKafkaSourceConfig("t", []*app.KafkaHostPort{nil}, "Warn", example.Lines{})).ToSink(sink)
		}, []string{"T207 MakeKafkaSourceConfig: parameter brokers is a list with a nil address; expected addresses that are not nil"}},
		"nil": {func(a *app.Application) {
			a.NewPipeline("p", nil).To(nil).ToStatePartition(nil, nil, "s", nil).ToSink(nil)
		}, []string{"T207 NewPipeline: parameter sourceConfig is nil; expected a source", "T207 To: parameter builder is nil",
			"T207 ToStatePartition: parameter sc is nil", "T207 ToStatePartition: parameter sb is nil", "T207 ToStatePartition: parameter pf is nil",
			"T207 ToSink: parameter sinkConfig is without a sink or an encoder"}},
		"not what it must be": {func(a *app.Application) {
			a.NewPipeline("p", app.MakeTCPSourceConfig("h", "1", unframed{})).To(notAComputation{}).ToSink(sink)
			a.NewPipeline("q", app.MakeTCPSourceConfig("h", "2", longHeader{})).Done()
		}, []string{"T223 decoder application_test.unframed has no method HeaderLength or PayloadLength",
			"T223 the result of Build of application_test.notAComputation, int, has no method Compute(data interface{}) interface{}",
			`T207 source "q": parameter HeaderLength is 65; expected 1 to 64 bytes`}},
		"after the end": {func(a *app.Application) {
			a.NewPipeline("p", source()).ToSink(sink).ToMulti(example.Split{}).ToSink(sink)
		},
			[]string{`T212 ToMulti cannot follow the end of pipeline "p"; nothing follows a sink`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			application := app.MakeApplication("a")
			c.declare(application)
			err := application.Check()
			if err == nil {
				t.Fatal("nothing was found")
			}
			text := err.Error()
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s\ndoes not have\n%s", text, want)
				}
			}
			if strings.Count(text, "\n  fix: ") != len(c.want) || strings.Count(text, "application_test.go:") != len(c.want) {
				t.Errorf("expected %d findings with their places:\n%s", len(c.want), text)
			}
			if strings.ContainsAny(strings.ReplaceAll(text, "interface{}", ""), "{}") {
				t.Errorf("a text has a place that was not filled in:\n%s", text)
			}
			if !strings.Contains(application.ToJson(), `"diagnostics"`) {
				t.Error("ToJson has no diagnostics")
			}
		})
	}
}

var _ wa.StateBuilder = &symbolDataBuilder{}

func TestPoliciesStandWhereTheSchemaPutsThem(t *testing.T) {
	application := app.MakeApplication("Policies").OnError("fail")
	application.NewPipeline("Orders", app.MakeTCPSourceConfig("127.0.0.1", "7010", &orderDecoder{}).OnError("dead_letter")).
		ToStatePartitionMulti(&checkOrder{}, &symbolDataBuilder{}, "symbol-data", &symbolPartition{}).OnError("fail").
		ToSinks(
			app.MakeTCPSinkConfig("127.0.0.1", "7002", &orderEncoder{}).OnError("fail"),
			app.MakeTCPSinkConfig("127.0.0.1", "7003", &orderEncoder{}),
		)
	application.NewPipeline("More", app.MakeTCPSourceConfig("127.0.0.1", "7011", &orderDecoder{})).OnError("fail").
		ToSink(app.MakeTCPSinkConfig("127.0.0.1", "7004", &orderEncoder{})).OnError("dead_letter")
	if err := application.Check(); err != nil {
		t.Fatal(err)
	}
	type part struct {
		OnError string `json:"on_error"`
	}
	var document struct {
		part
		Pipelines []struct{ Sources, Steps, Sinks []part }
	}
	text := application.ToJson()
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	got := []string{document.OnError}
	for _, pipeline := range document.Pipelines {
		for _, parts := range [][]part{pipeline.Sources, pipeline.Steps, pipeline.Sinks} {
			for _, one := range parts {
				got = append(got, one.OnError)
			}
		}
	}
	if want := "fail dead_letter fail fail  fail dead_letter"; strings.Join(got, " ") != want {
		t.Errorf("policies are %q; expected %q", strings.Join(got, " "), want)
	}
	if !strings.Contains(text, "\"name\": \"Policies\",\n  \"on_error\": \"fail\",\n  \"workers\"") ||
		strings.Count(text, "\"worker\": \"main\",\n          \"on_error\"") != 5 {
		t.Errorf("a policy does not stand where the schema puts it:\n%s", text)
	}
}

func TestAPolicyThatIsNone(t *testing.T) {
	application := app.MakeApplication("Policies").OnError("stop")
	application.NewPipeline("Orders", app.MakeTCPSourceConfig("127.0.0.1", "7010", &orderDecoder{}).OnError("skip")).
		ToSink(app.MakeTCPSinkConfig("127.0.0.1", "7002", &orderEncoder{}))
	err := application.Check()
	for _, want := range []string{
		`T207 OnError: parameter policy is "stop"; expected "dead_letter" or "fail"`,
		`T207 OnError: parameter policy is "skip"; expected "dead_letter" or "fail"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say: %s", err, want)
		}
	}
}

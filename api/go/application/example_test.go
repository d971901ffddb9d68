package application_test

import (
	"fmt"
	"strings"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/testdata/example"
)

var (
	lines  = application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})
	counts = application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{})
	texts  = application.MakeTCPSinkConfig("127.0.0.1", "7003", textEncoder{})
)

// shout is a computation. It has no fields, so it can be its own builder.
type shout struct{}

func (shout) Build() interface{}                   { return shout{} }
func (shout) Name() string                         { return "shout" }
func (shout) Compute(data interface{}) interface{} { return strings.ToUpper(data.(string)) }

// textEncoder encodes texts as lines.
type textEncoder struct{}

func (textEncoder) Encode(data interface{}) []byte { return []byte(data.(string) + "\n") }

// repeated is a state computation that returns each word that it has seen before.
type repeated struct{}

func (repeated) Name() string { return "repeated" }

func (repeated) Compute(data, state interface{}) ([]interface{}, bool) {
	count, _ := example.CountWords{}.Compute(data, state)
	if count.(*example.WordCount).Count == 1 {
		return nil, true
	}
	return []interface{}{data}, true
}

// wordLength is a partition function in the form of Wallaroo 0.4, in which keys are numbers.
type wordLength struct{}

func (wordLength) Partition(data interface{}) uint64 { return uint64(len(data.(string))) }

func Example() {
	app := application.MakeApplication("Word Count Application")
	app.NewPipeline("Split and Count", lines).
		ToMulti(example.Split{}).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "word totals", example.FirstLetter{}).
		ToSink(counts)
	example.Show(app.ToJson(), "steps", "kind", "name", "inputs")
	// Output:
	// computation_multi split [0/sources/0]
	// state_computation count [0/steps/0]
}

func ExampleApplication_Check() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).To(shout{}).ToSink(texts)
	fmt.Println(app.Check())
	app.NewPipeline("More words", application.MakeTCPSourceConfig("127.0.0.1", "70100", example.Lines{})).To(shout{})
	for line := range strings.Lines(app.Check().Error()) {
		if !strings.HasPrefix(line, "  at ") { // the place in the program
			fmt.Print(line)
		}
	}
	// Output:
	// <nil>
	// T211 source address "127.0.0.1:70100" is not usable; "70100" is no port
	//   fix: give HOST:PORT with a port of at most 65535
	// T204 pipeline "More words" has no end after "shout"
	//   fix: end each pipeline with to_sink or done, and at least one with to_sink (Go: To, ToSink or Done)
}

func ExampleApplication_OnError() {
	app := application.MakeApplication("Words").OnError("fail")
	pipeline := app.NewPipeline("Words", lines).OnError("dead_letter").To(shout{}).ToSink(texts)
	example.Show(app.ToJson(), "sources", "path", "on_error")
	example.Show(app.ToJson(), "sinks", "path", "on_error")
	pipeline.OnError("skip")
	example.Show(app.ToJson(), "sinks")
	// Output:
	// 0/sources/0 dead_letter
	// 0/sinks/0 -
	// T207 OnError: parameter policy is "skip"; expected "dead_letter" or "fail"; fix: pass "dead_letter" or "fail"
}

// If a builder is used twice, the pipeline branches.
func ExamplePipelineBuilder() {
	app := application.MakeApplication("Words")
	words := app.NewPipeline("Words", lines).ToMulti(example.Split{})
	words.To(shout{}).ToSink(texts)
	words.ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).ToSink(counts)
	example.Show(app.ToJson(), "steps", "path", "name", "inputs")
	example.Show(app.ToJson(), "sinks", "port", "inputs")
	// Output:
	// 0/steps/0 split [0/sources/0]
	// 0/steps/1 shout [0/steps/0]
	// 0/steps/2 count [0/steps/0]
	// 7003 [0/steps/1]
	// 7002 [0/steps/2]
}

// A step may be a computation of another program, here of one in Python.
func ExamplePipelineBuilder_To() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).
		To(shout{}).
		To(wa.OtherProgram("scorer", "scorer.py").Computation("score", "string", "string")).
		ToSink(texts)
	example.Show(app.ToJson(), "steps", "name", "worker", "codec")
	// Output:
	// shout main string
	// score scorer string
}

// Both pipelines count in the same state, "totals". The second pipeline has no sink.
func ExamplePipelineBuilder_Done() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(counts)
	app.NewPipeline("More words", application.MakeTCPSourceConfig("127.0.0.1", "7011", example.Lines{})).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		Done()
	example.Show(app.ToJson(), "steps", "path", "state.name")
	example.Show(app.ToJson(), "sinks", "path", "port")
	// Output:
	// 0/steps/0 totals
	// 1/steps/0 totals
	// 0/sinks/0 7002
}

func ExamplePipelineBuilder_ToStatePartition() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "by letter", example.FirstLetter{}).
		ToSink(counts)
	// With a list of numbers, as in Wallaroo 0.4, other keys are not allowed.
	app.NewPipeline("Short words", application.MakeTCPSourceConfig("127.0.0.1", "7011", example.Lines{})).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "by length", wordLength{}, []uint64{1, 2, 3}).
		ToSink(counts)
	example.Show(app.ToJson(), "steps", "state.key.values", "state.key.unknown")
	// Output:
	// [] create
	// [1 2 3] dead_letter
}

func ExamplePipelineBuilder_ToStatePartitionWithKeys() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).
		ToStatePartitionWithKeys(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}, [][]byte{[]byte("a"), {0xff}}).
		ToSink(counts)
	example.Show(app.ToJson(), "steps", "state.key.values", "state.key.unknown")
	// Output: [a map[base64:/w==]] create
}

func ExamplePipelineBuilder_ToStatePartitionMulti() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).
		ToStatePartitionMulti(repeated{}, example.TotalsBuilder{}, "seen", example.FirstLetter{}).
		ToStatePartitionMultiWithKeys(repeated{}, example.TotalsBuilder{}, "seen twice", example.FirstLetter{}, [][]byte{[]byte("a")}).
		ToSink(texts)
	example.Show(app.ToJson(), "steps", "kind", "name", "state.key.values")
	// Output:
	// state_computation_multi repeated []
	// state_computation_multi repeated [a]
}

func ExamplePipelineBuilder_ToSinks() {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", lines).
		To(shout{}).
		ToSinks(texts, application.MakeTCPSinkConfig("127.0.0.1", "7004", textEncoder{})).
		OnError("fail") // of both
	example.Show(app.ToJson(), "sinks", "port", "on_error")
	// Output:
	// 7003 fail
	// 7004 fail
}

package wallarooapi_test

import (
	"encoding/binary"
	"fmt"

	wa "wallarooapi"
	"wallarooapi/application"
)

// check is a computation that emits long lines to the output "long".
type check struct{}

func (check) Name() string         { return "check" }
func (check) Outputs() []string    { return []string{"long"} }
func (c check) Build() interface{} { return c }

func (check) Compute(data interface{}) interface{} {
	if line := data.(string); len(line) > 3 {
		return wa.Output{Name: "long", Value: line}
	}
	return data
}

type lineDecoder struct{}

func (lineDecoder) HeaderLength() uint64 { return 4 }
func (lineDecoder) PayloadLength(header []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(header))
}
func (lineDecoder) Decode(payload []byte) interface{} { return string(payload) }

type lineEncoder struct{}

func (lineEncoder) Encode(data interface{}) []byte { return []byte(data.(string) + "\n") }

func ExampleOutput() {
	fmt.Println(check{}.Compute("abc"), check{}.Compute("abcd"))
	// Output: abc {long abcd}
}

func ExampleWithOutputs() {
	var computation wa.WithOutputs = check{}
	app := application.MakeApplication("Lines")
	lines := app.NewPipeline("lines", application.MakeTCPSourceConfig("127.0.0.1", "7010", lineDecoder{})).To(check{})
	lines.ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", lineEncoder{}))
	lines.Output("long").ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7003", lineEncoder{}))
	fmt.Println(computation.Outputs(), len(app.ToJson()) > 0)
	// Output: [long] true
}

func ExampleRemoteComponent_WithOutput() {
	scorer := wa.OtherProgram("scorer", "scorer.py")
	score := scorer.Computation("score", "json", "float64").WithOutput("unknown", "string")
	fmt.Println(score.Outputs[0] == wa.RemoteOutput{Name: "unknown", Codec: "string"})
	// Output: true
}

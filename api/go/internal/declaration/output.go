package declaration

import (
	"reflect"
	"strconv"
	"strings"

	wa "wallarooapi"
	"wallarooapi/internal/diagnostic"
)

// NamedOutput is an output that a step declares.
type NamedOutput struct {
	Name  string
	Type  reflect.Type // type of its messages; nil if the program does not state it
	Codec string       // codec of the messages if they go to other programs; otherwise empty
}

// OutputsOf returns the named outputs of a computation that implements wallarooapi.WithOutputs; none for others.
func OutputsOf(object any) (outputs []NamedOutput) {
	if declared, is := object.(wa.WithOutputs); is {
		for _, name := range declared.Outputs() {
			outputs = append(outputs, NamedOutput{Name: name})
		}
	}
	return outputs
}

// AddOutputs adds a step of kind Output to the pipeline for each named output of a step, even if no step or sink reads
// the output.
func (a *Application) AddOutputs(pipeline *Pipeline, step *Step) {
	seen := map[string]bool{}
	for _, output := range step.Outputs {
		path := pipeline.Path("steps", len(pipeline.Steps))
		a.checkName("output", output.Name, Pointer(path, "name"), step.Place)
		if seen[output.Name] {
			a.Wrong(Pointer(step.Path), step.Place, step.Name, "outputs", diagnostic.Shown(output.Name)+" again", "outputs with names of their own")
		}
		seen[output.Name] = true
		pipeline.Steps = append(pipeline.Steps, &Step{
			Path: path, Name: output.Name, Kind: Output, Inputs: []string{step.Path}, Place: step.Place,
			Codec: output.Codec, Output: output.Type, Remote: step.Remote,
		})
	}
}

// OutputOf returns the stream of the named output `name`. The parameter from is the path of its step. If the step has
// no such output, OutputOf reports this and returns a placeholder.
func (a *Application) OutputOf(pipeline *Pipeline, from, name string) *Node {
	place, what, declared := Caller(), "this place", []string{}
	node := &Node{Path: from, What: name, Place: place, Ended: true}
	for _, step := range pipeline.Steps {
		switch {
		case step.Path == from:
			what = "step " + strconv.Quote(step.Name)
		case step.Kind != Output || step.Inputs[0] != from:
		case step.Name == name:
			node = &Node{Path: step.Path, What: name, Place: place}
			pipeline.Nodes = append(pipeline.Nodes, node)
			return node
		default:
			declared = append(declared, strconv.Quote(step.Name))
		}
	}
	hint := ""
	if len(declared) > 0 {
		hint = "; it has " + strings.Join(declared, ", ")
	}
	a.Report(diagnostic.Of("T273", "step", what, "output", strconv.Quote(name), "hint", hint,
		"declare", "Outputs() []string of a computation, or a stream.Output passed to the step"), Pointer(from), place)
	return node
}

// checkOutputs reports unknown codecs of named outputs, and codecs that cannot write the messages of their outputs.
func (a *Application) checkOutputs(pointer string, step *Step, method string) {
	for _, output := range step.Outputs {
		a.checkCodec(pointer, step, method, "output "+diagnostic.Shown(output.Name), output.Codec, output.Type)
	}
}

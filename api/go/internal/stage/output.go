package stage

import (
	"maps"
	"slices"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/timing"
)

// emitTo passes a message to the successors of a named output. A message for an output that the step does not declare
// becomes a dead letter.
func (n *node) emitTo(message wa.Output) {
	output := n.outputs[message.Name]
	switch {
	case output == nil:
		n.bury("C527", message.Value, n.undeclared(message.Name).Error(), "")
	case message.Value != nil:
		output.in++
		output.forward(message.Value)
	}
}

func (n *node) undeclared(name string) *emission.Undeclared {
	return &emission.Undeclared{Name: name, Declared: slices.Collect(maps.Keys(n.outputs))}
}

// admit panics if one of the results of user code is for an output that the step does not declare. It is called before
// a result is passed on, so that the call fails as a whole.
func (n *node) admit(results *emission.Results) {
	n.admitOne(results.One)
	for _, message := range results.Many {
		n.admitOne(message)
	}
}

func (n *node) admitOne(message any) {
	if found, is := message.(wa.Output); is && n.outputs[found.Name] == nil {
		panic(n.undeclared(found.Name))
	}
}

// codeOf returns the error code for a panic of user code.
func codeOf(recovered any) string {
	switch recovered.(type) {
	case *emission.Undeclared:
		return "C527"
	case *timing.Wrong:
		return "C529"
	}
	return "C501"
}

// watched wraps the aggregation of a window step. It refuses results for outputs that the step does not declare (see
// admit).
type watched struct {
	declaration.Aggregation
	n *node
}

func (w watched) Output(key []byte, accumulator any, bounds declaration.Bounds) emission.Results {
	results := w.Aggregation.Output(key, accumulator, bounds)
	w.n.admit(&results)
	return results
}

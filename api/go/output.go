package wallarooapi

// Output is a message for a named output of the computation that returns it, in the place of a message:
//
//	return wa.Output{Name: "alerts", Value: alert}
//
// The computation declares the name, see WithOutputs; a message for another output is a dead letter (C527). A nil Value is no message.
// When the computation fails on a message, nothing that it emitted for it goes on.
type Output struct {
	Name  string
	Value interface{}
}

// WithOutputs is implemented by computations and state computations that emit to named outputs, too. A pipeline goes on from one with
// PipelineBuilder.Output. Messages of an output that nothing goes on from are counted and dropped.
type WithOutputs interface {
	// Outputs returns the names, always the same.
	Outputs() []string
}

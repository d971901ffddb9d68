package wallarooapi

// Output is a message for a named output of a step. It goes to the steps and sinks after this output, not to those
// after the step. A computation returns an Output in place of a message:
//
//	return wa.Output{Name: "alerts", Value: alert}
//
// The computation must declare the name (see WithOutputs). If it returns an Output with another name, its message
// becomes a dead letter (C527). An Output with a nil Value is ignored. If the computation fails on a message, all
// outputs of that message are discarded.
type Output struct {
	Name  string
	Value interface{}
}

// WithOutputs is implemented by computations and state computations that also emit to named outputs.
// PipelineBuilder.Output adds steps or sinks after a named output. If nothing is added after an output, its messages
// are counted and dropped.
type WithOutputs interface {
	// Outputs returns the names of the outputs. It must always return the same names.
	Outputs() []string
}

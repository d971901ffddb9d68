package wallarooapi

// Program is another program whose functions are steps of this application. OtherProgram returns one.
type Program struct {
	Worker string // name of the program's worker in the topology
	Target string
}

// OtherProgram describes another program, in Python or Go, whose functions this application uses as steps. The methods
// of the result describe these functions. worker is the name of the program's worker in the topology and must not be
// "main". target is a Python file or module, or a Go package directory, relative to this program's directory.
//
//	scorer := wa.OtherProgram("scorer", "scorer.py")
//	pipeline.To(scorer.Computation("score", "json", "float64"))
//
// Faults are reported when the application uses a component of the program: a wrong name or target (T207, T210), an
// unknown codec (T207), or a type that the codec cannot write (T262).
func OtherProgram(worker, target string) *Program { return &Program{worker, target} }

// Computation describes a computation of the other program with at most one result per message. name is the name under
// which the program offers it. input and output are the codecs of its input and output messages: "bytes", "string",
// "int64", "float64", "json" or "protobuf:FULL.NAME".
func (p *Program) Computation(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "computation", Name: name, Input: input, Output: output}
}

// ComputationMulti describes a computation of the other program with any number of results. The parameters are those of
// Computation.
func (p *Program) ComputationMulti(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "computation_multi", Name: name, Input: input, Output: output}
}

// StateComputation describes a state computation of the other program, which gets the state of the key that a message
// carries. The parameters are those of Computation.
func (p *Program) StateComputation(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "state_computation", Name: name, Input: input, Output: output}
}

// StateComputationMulti is StateComputation for a state computation with any number of results.
func (p *Program) StateComputationMulti(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "state_computation_multi", Name: name, Input: input, Output: output}
}

// RemoteComponent describes a function of another program that is a step of this application. Pass it to
// PipelineBuilder.To or stream.Through.
type RemoteComponent struct {
	Program Program
	Kind    string // kind of the step, e.g. computation
	Name    string
	Input   string // codec of the input messages
	Output  string // codec of the output messages
	Outputs []RemoteOutput
}

// RemoteOutput is a named output of a RemoteComponent.
type RemoteOutput struct {
	Name  string
	Codec string // codec of the output's messages
}

// WithOutput returns a copy of the component with one more named output. The other program must declare the same
// output. codec is the codec of the output's messages.
func (c *RemoteComponent) WithOutput(name, codec string) *RemoteComponent {
	more := *c
	more.Outputs = append(c.Outputs[:len(c.Outputs):len(c.Outputs)], RemoteOutput{name, codec})
	return &more
}

// Build returns c. With this method, a RemoteComponent is a ComputationBuilder, which PipelineBuilder.To takes.
func (c *RemoteComponent) Build() interface{} { return c }

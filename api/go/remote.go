package wallarooapi

// Program is another program that hosts components of this application. OtherProgram returns one.
type Program struct {
	Worker string // name of the program's worker in the topology
	Target string
}

// OtherProgram describes another program, in Python or Go, that hosts components for this application. worker is the
// name of the program's worker in the topology and must not be "main". target is a Python file or module, or a Go
// package directory, relative to this program's directory.
//
//	scorer := wa.OtherProgram("scorer", "scorer.py")
//	pipeline.To(scorer.Computation("score", "json", "float64"))
//
// Faults are reported when the application uses a component of the program: a wrong name or target (T207, T210), an
// unknown codec (T207), or a type that the codec cannot write (T262).
func OtherProgram(worker, target string) *Program { return &Program{worker, target} }

// Computation describes a computation with at most one result per message. name is the name under which the program
// offers the computation. input and output are codecs: "bytes", "string", "int64", "float64", "json" or
// "protobuf:FULL.NAME".
func (p *Program) Computation(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "computation", Name: name, Input: input, Output: output}
}

// ComputationMulti describes a computation with any number of results. The parameters are those of Computation.
func (p *Program) ComputationMulti(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "computation_multi", Name: name, Input: input, Output: output}
}

// StateComputation describes a state computation. The computation gets the state of the key that a message carries.
func (p *Program) StateComputation(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "state_computation", Name: name, Input: input, Output: output}
}

// StateComputationMulti describes a state computation with any number of results. Otherwise it is like
// StateComputation.
func (p *Program) StateComputationMulti(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "state_computation_multi", Name: name, Input: input, Output: output}
}

// RemoteComponent is a component of another program. Pass it to PipelineBuilder.To or stream.Through.
type RemoteComponent struct {
	Program Program
	Kind    string // kind of the step, e.g. computation
	Name    string
	Input   string // codec of the input messages
	Output  string // codec of the output messages
	Outputs []RemoteOutput
}

// RemoteOutput is a named output of a component of another program.
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

// Build returns c, which stands for the component that the other program builds.
func (c *RemoteComponent) Build() interface{} { return c }

package wallarooapi

// Program is another program, whose components take part in this application; made by OtherProgram.
type Program struct {
	Worker string // name that its worker gets in the topology
	Target string
}

// OtherProgram names another program, in Python or Go, that hosts components for this application. worker is the name that its worker
// gets in the topology, not "main"; target is a Python file or module, or a Go package directory, relative to this program's
// directory.
//
//	scorer := wa.OtherProgram("scorer", "scorer.py")
//	pipeline.To(scorer.Computation("score", "json", "float64"))
//
// What is wrong with it is reported where a component of it is used: a name or target (T207, T210), a codec (T207), a type that its
// codec cannot write (T262).
func OtherProgram(worker, target string) *Program { return &Program{worker, target} }

// Computation names a computation: one message in, at most one out. name is that under which the program offers it, input and output
// are codecs: "bytes", "string", "int64", "float64", "json" or "protobuf:FULL.NAME".
func (p *Program) Computation(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "computation", Name: name, Input: input, Output: output}
}

// ComputationMulti names a computation that gives any number of messages; parameters as for Computation.
func (p *Program) ComputationMulti(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "computation_multi", Name: name, Input: input, Output: output}
}

// StateComputation names a state computation; its key is the one that the message carries.
func (p *Program) StateComputation(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "state_computation", Name: name, Input: input, Output: output}
}

// StateComputationMulti names a state computation that gives any number of messages; its key is the one that the message carries.
func (p *Program) StateComputationMulti(name, input, output string) *RemoteComponent {
	return &RemoteComponent{Program: *p, Kind: "state_computation_multi", Name: name, Input: input, Output: output}
}

// RemoteComponent is a component of another program, to be handed to PipelineBuilder.To or stream.Through.
type RemoteComponent struct {
	Program Program
	Kind    string // of the step, e.g. computation
	Name    string
	Input   string // codec of the messages that it takes
	Output  string // codec of the messages that it gives
	Outputs []RemoteOutput
}

// RemoteOutput is a named output of a component of another program.
type RemoteOutput struct {
	Name  string
	Codec string // of the messages for it
}

// WithOutput returns the component with a named output more, which it must have in its program, too; codec is that of its messages.
func (c *RemoteComponent) WithOutput(name, codec string) *RemoteComponent {
	more := *c
	more.Outputs = append(c.Outputs[:len(c.Outputs):len(c.Outputs)], RemoteOutput{name, codec})
	return &more
}

// Build returns the component itself, which stands for the one that the other program builds.
func (c *RemoteComponent) Build() interface{} { return c }

package wallarooapi

// Computation turns one message into at most one other message.
type Computation interface {
	// Name names the step in the topology, in logs and in dead letters; it must always be the same.
	Name() string
	// Compute runs once per message. It must not change data, which other steps may get too. A nil result
	// means that nothing goes on.
	Compute(data interface{}) interface{}
}

// ComputationBuilder makes computations for PipelineBuilder.To.
type ComputationBuilder interface {
	// Build returns a Computation. It is called for the declaration and once per stream.
	Build() interface{}
}

// ComputationMulti turns one message into any number of messages.
type ComputationMulti interface {
	// Name names the step, as Computation.Name does.
	Name() string
	// Compute runs once per message and returns the messages that go on, in order. Nil items are left out.
	Compute(data interface{}) []interface{}
}

// ComputationMultiBuilder makes computations for PipelineBuilder.ToMulti.
type ComputationMultiBuilder interface {
	// Build returns a ComputationMulti. It is called for the declaration and once per stream.
	Build() interface{}
}

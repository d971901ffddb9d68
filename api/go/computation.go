package wallarooapi

// Computation turns one message into at most one other message.
type Computation interface {
	// Name returns the name of the step in the topology, in logs and in dead letters. It must always return the same
	// name.
	Name() string
	// Compute runs once per message. It must not change data, because other steps may get the same value. A nil result
	// is no message.
	Compute(data interface{}) interface{}
}

// ComputationBuilder makes computations for PipelineBuilder.To.
type ComputationBuilder interface {
	// Build returns a Computation. The runtime calls it once for the declaration and once per stream.
	Build() interface{}
}

// ComputationMulti turns one message into any number of messages.
type ComputationMulti interface {
	// Name returns the name of the step, as Computation.Name does.
	Name() string
	// Compute runs once per message and returns its results in order. Nil items are left out.
	Compute(data interface{}) []interface{}
}

// ComputationMultiBuilder makes computations for PipelineBuilder.ToMulti.
type ComputationMultiBuilder interface {
	// Build returns a ComputationMulti. The runtime calls it once for the declaration and once per stream.
	Build() interface{}
}

package wallarooapi

// Computation is a step without state that turns a message into at most one other message.
type Computation interface {
	// Name returns the name of the step in the topology, in logs and in dead letters. It must always return the same
	// name.
	Name() string
	// Compute is called for each message. It must not change data, because other steps may get the same value. If it
	// returns nil, the message has no result.
	Compute(data interface{}) interface{}
}

// ComputationBuilder makes computations for PipelineBuilder.To.
type ComputationBuilder interface {
	// Build returns a Computation. The worker calls Build once for the declaration, and once for each task of Spark that
	// sends messages to it. Each such object is used by one goroutine at a time.
	Build() interface{}
}

// ComputationMulti is a step without state that turns a message into any number of messages.
type ComputationMulti interface {
	// Name returns the name of the step, as Computation.Name does.
	Name() string
	// Compute is called for each message and returns its results in order. Nil items are left out.
	Compute(data interface{}) []interface{}
}

// ComputationMultiBuilder makes computations for PipelineBuilder.ToMulti.
type ComputationMultiBuilder interface {
	// Build returns a ComputationMulti. It is called as ComputationBuilder.Build is.
	Build() interface{}
}

package wallarooapi

// StateComputation is a step that processes a message with the state of the message's key.
type StateComputation interface {
	// Name returns the name of the step, as Computation.Name does.
	Name() string
	// Compute is called for each message. It returns the resulting message (nil for no message) and whether to persist
	// the state. It may change the state in place. If it changes the state and returns false, the change is written
	// when Compute next returns true for the key. Until then, the change may be lost: by a restart, by a failure, or
	// because the worker removes the state from its memory. The command `wallaroo run --debug` finds such changes
	// (C510). Messages with the same key are processed one after the other in arrival order. Different keys run in
	// parallel.
	Compute(data interface{}, state interface{}) (interface{}, bool)
}

// StateComputationMulti is a StateComputation with any number of results.
type StateComputationMulti interface {
	// Name returns the name of the step, as Computation.Name does.
	Name() string
	// Compute is like StateComputation.Compute, but returns a list of messages. Nil items are left out.
	Compute(data interface{}, state interface{}) ([]interface{}, bool)
}

// StateBuilder makes the states of new keys.
//
// In Wallaroo 0.4 it also had a method Name() string. A builder may keep this method.
type StateBuilder interface {
	// Build returns a new state object, usually a pointer. Keys must not share the object. Its type must be
	// serializable (C504).
	Build() interface{}
}

// PartitionFunction returns the key of a message as bytes, in the form of Wallaroo 0.5.
type PartitionFunction interface {
	// Partition returns the key of a message. It runs once per message, and again after a failure. The key must depend
	// on the message alone. If Partition panics, the message becomes a dead letter (C501).
	Partition(data interface{}) []byte
}

// PartitionFunctionU64 returns the key of a message as a number, in the form of Wallaroo 0.4.
type PartitionFunctionU64 interface {
	// Partition is like PartitionFunction.Partition, but returns the key as a number.
	Partition(data interface{}) uint64
}

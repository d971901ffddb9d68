package wallarooapi

// StateComputation runs a message against the state of its key.
type StateComputation interface {
	// Name names the step, as Computation.Name does.
	Name() string
	// Compute may change state in place and returns the message that goes on (nil: none) and whether the
	// state is to be persisted. With false nothing is written for this message: what it changed is saved with the key's
	// next true, and is undefined after the state has been read again (restart, failure, full cache).
	// `wallaroo run --engine memory --check-persist` finds such changes (C510).
	// Messages with one key come one after the other in arrival order; different keys run in parallel.
	Compute(data interface{}, state interface{}) (interface{}, bool)
}

// StateComputationMulti is a StateComputation with any number of results.
type StateComputationMulti interface {
	// Name names the step, as Computation.Name does.
	Name() string
	// Compute is StateComputation.Compute with a list of messages, whose nil items are left out.
	Compute(data interface{}, state interface{}) ([]interface{}, bool)
}

// StateBuilder makes the state of a new key.
//
// Wallaroo 0.4 had a method Name() string too; a builder may keep it.
type StateBuilder interface {
	// Build returns a new state object, usually a pointer, that no other key shares. Its type must have bytes (C504).
	Build() interface{}
}

// PartitionFunction gives the key of a message as bytes; the form of Wallaroo 0.5.
type PartitionFunction interface {
	// Partition runs once per message, and again after a failure: it must depend on the message alone. A panic makes the message
	// a dead letter (C501).
	Partition(data interface{}) []byte
}

// PartitionFunctionU64 gives the key of a message as a number; the form of Wallaroo 0.4.
type PartitionFunctionU64 interface {
	// Partition is PartitionFunction.Partition for numbers.
	Partition(data interface{}) uint64
}

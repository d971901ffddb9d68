// Package wallarooapi lets Go programs declare stream applications that run on Apache Spark.
//
// A program implements the interfaces of this package (decoders, computations, state builders, partition functions,
// encoders) and declares an application with package application. New programs end with worker.Main. Programs in the
// style of Wallaroo's tutorials end with application.ToJson in an exported ApplicationSetup.
//
// # What runs in parallel
//
// A worker serves several tasks of Spark at once, each on its own goroutine. For each task, Build of a
// ComputationBuilder or ComputationMultiBuilder returns a computation that only this task uses. If a builder always
// returns the same object, several goroutines share this object. Decoders, encoders, partition functions, state
// computations and state builders are single objects that several goroutines call, so they must not keep data between
// calls. The same applies to Serialize and Deserialize. A state object is used by one goroutine at a time.
//
// # Failure
//
// If one of these objects panics on a message, the message becomes a dead letter, which contains the Go stack. The
// state of the message's key stays as it was before the message, and the application continues.
//
// Source: Wallaroo 0.4 and 0.5, package wallarooapi.
package wallarooapi

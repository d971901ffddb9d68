// Package wallarooapi lets Go programs declare stream applications that run on Apache Spark.
//
// A program implements the interfaces of this package (decoders, computations, state builders, partition functions,
// encoders) and declares an application with package application. New programs end with worker.Main. Programs in the
// style of Wallaroo's tutorials end with application.ToJson in an exported ApplicationSetup.
//
// # What runs in parallel
//
// A worker processes the messages of several streams at once, each stream on its own goroutine. The object that Build
// of a ComputationBuilder or ComputationMultiBuilder returns is used by one stream. A builder that always returns the
// same object shares it between goroutines. Decoders, encoders, partition functions, state computations and state
// builders are single objects that several goroutines call, so they must not keep data between calls. A state object
// is used by one goroutine at a time, because only one call at a time works on a bucket of keys. Several goroutines
// call Serialize and Deserialize.
//
// # Failure
//
// A panic in any of these objects makes the message that caused it a dead letter, which contains the Go stack. The
// state of the message's key stays as it was before the message, and the application continues.
//
// Source: Wallaroo 0.4 and 0.5, package wallarooapi.
package wallarooapi

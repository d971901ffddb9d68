// Package wallarooapi lets Go programs declare stream applications that run on Apache Spark.
//
// A program implements the interfaces of this package (decoders, computations, state builders,
// partition functions, encoders), declares an application with package application, and ends with
// application.ToJson (in the style of Wallaroo's tutorials, with an exported ApplicationSetup) or with
// worker.Main (new programs).
//
// # What runs in parallel
//
// A worker handles the messages of several streams at once, each on a goroutine of its own. What Build
// of a ComputationBuilder or ComputationMultiBuilder returns is used by one stream; a builder that gives
// every caller the same object shares it between goroutines. Decoders, encoders, partition functions,
// state computations and state builders are single objects and are called from several goroutines: they must
// not keep data between calls. A state object is used by one goroutine at a time, because a bucket of
// keys belongs to one call at a time. Serialize and Deserialize are called from several goroutines.
//
// # Failure
//
// A panic in any of these objects makes the message that caused it a dead letter, with its Go stack;
// the state of its key stays as it was before the message, and the application goes on.
//
// Source: Wallaroo 0.4 and 0.5, package wallarooapi.
package wallarooapi

// Package goka runs programs for Goka (github.com/lovoo/goka) on Spark. A program only has to change its import paths:
//
//	import (
//		"wallarooapi/goka"       // was github.com/lovoo/goka
//		"wallarooapi/goka/codec" // was github.com/lovoo/goka/codec
//	)
//
// Emitters, views, codecs, storages, the tester and the web pages are aliases of Goka's own. Graphs, contexts and
// processors are implemented in this package. A [Processor] runs the callbacks in the program's own process and starts
// the command `wallaroo run`. This command reads the inputs, keeps the state of each key in a checkpoint, and writes
// table, loop and outputs in Kafka transactions. Positions and state are committed together, so counts stay exact even
// if a process is killed. Recovery does not read the table topic.
//
// # Requirements
//
// Java 17 and the command `wallaroo` are required (the package wallaroo-spark-runtime[spark,kafka]). The command must be
// on PATH, in the .venv of the working directory or of a directory above it, or in the variable WALLAROO. The
// checkpoint of a group is in $XDG_STATE_HOME/wallaroo/goka; [Processor.Checkpoint] returns its path.
//
// # Tests
//
// With [WithTester] a graph runs on Goka's own processor under Goka's tester, without Spark and Kafka.
//
// # Clusters
//
// If a program calls [Serve] first in main, the commands `wallaroo run DIR`, `wallaroo pack DIR` and `wallaroo submit`
// accept it.
//
// # Differences
//
//   - Messages are processed in micro-batches. The output of a callback is delivered some tenths of a second later,
//     together with all output of its micro-batch.
//   - Messages of the same key are in the order of their topic and partition. Messages of different keys have no order,
//     neither as inputs nor as outputs.
//   - Inputs and joined tables may have different numbers of partitions. A key has one state, independent of
//     partitions.
//   - A callback may run again for a message, if a worker ends or another message fails. The output of the earlier
//     attempt is dropped.
//   - The state of a group is in its checkpoint. It does not begin with the values of an existing table topic, unless
//     [WithContinueGoka] is set. Only one processor of a group can run at a time.
//   - [Processor.Get] reads the table topic and returns the values of keys of all partitions.
package goka

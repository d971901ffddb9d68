// Package goka runs programs for Goka (github.com/lovoo/goka) on Spark: a program changes its import paths and nothing else.
//
//	import (
//		"wallarooapi/goka"       // was github.com/lovoo/goka
//		"wallarooapi/goka/codec" // was github.com/lovoo/goka/codec
//	)
//
// Emitters, views, codecs, storages, the tester and the web pages are Goka's own, by alias. Graphs, contexts and processors are ours: a
// [Processor] serves the callbacks from the program's own process and starts `wallaroo run`, which reads the inputs, keeps the state of
// each key in a checkpoint, and writes table, loop and outputs in transactions of Kafka. Positions and state are committed together, so
// a count stays exact whatever is killed, and no table topic is read to recover.
//
// # What is needed
//
// The command `wallaroo` (pip install 'wallaroo-spark-runtime[kafka]') on PATH, in the .venv of the working directory or one above it,
// or in the variable WALLAROO; Java 17. The checkpoint of a group is in $XDG_STATE_HOME/wallaroo/goka; [Processor.Checkpoint] says where.
//
// # Tests
//
// With [WithTester] a graph runs on Goka's own processor under Goka's tester, without Spark and Kafka.
//
// # Clusters
//
// A program that calls [Serve] first in main is one that `wallaroo run DIR`, `wallaroo pack DIR` and `wallaroo submit` take.
//
// # What differs
//
//   - Messages come in micro-batches: what a callback writes is delivered some tenths of a second later, all of a micro-batch at once.
//   - Messages of one key come in the order of their topic and partition; those of two keys in no order, on outputs neither.
//   - Inputs and joined tables need not have the same number of partitions, and a key has one state, whatever its partitions are.
//   - A callback may run again for a message, when a worker ends or another message fails; what it wrote the first time is dropped.
//   - A table topic that exists is not read: the state is that of the checkpoint. One processor of a group runs at a time.
//   - [Processor.Get] reads the keys of all partitions, from the table topic.
package goka

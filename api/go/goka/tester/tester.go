// Package tester has Goka's tester, which runs groups without Kafka, under this module's path.
package tester

import theirs "github.com/lovoo/goka/tester"

// These types are aliases of Goka's types.
type (
	// EmitOption is an alias of Goka's type.
	EmitOption = theirs.EmitOption
	// MockTopicManager is an alias of Goka's type.
	MockTopicManager = theirs.MockTopicManager
	// QueueTracker is an alias of Goka's type.
	QueueTracker = theirs.QueueTracker
	// T is an alias of Goka's type.
	T = theirs.T
	// Tester is an alias of Goka's type.
	Tester = theirs.Tester
)

// These are Goka's functions. See [github.com/lovoo/goka/tester].
var (
	New                 = theirs.New
	NewMockTopicManager = theirs.NewMockTopicManager
	WithHeaders         = theirs.WithHeaders
	WithTime            = theirs.WithTime
)

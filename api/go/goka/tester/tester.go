// Package tester exports Goka's tester, which runs groups without Kafka, so that programs need not import Goka.
package tester

import theirs "github.com/lovoo/goka/tester"

// These types are aliases of Goka's types.
type (
	EmitOption       = theirs.EmitOption
	MockTopicManager = theirs.MockTopicManager
	QueueTracker     = theirs.QueueTracker
	T                = theirs.T
	Tester           = theirs.Tester
)

// These are Goka's functions. See [github.com/lovoo/goka/tester].
var (
	New                 = theirs.New
	NewMockTopicManager = theirs.NewMockTopicManager
	WithHeaders         = theirs.WithHeaders
	WithTime            = theirs.WithTime
)

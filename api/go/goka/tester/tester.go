package tester

import theirs "github.com/lovoo/goka/tester"

// The types are Goka's.
type (
	// EmitOption is Goka's.
	EmitOption = theirs.EmitOption
	// MockTopicManager is Goka's.
	MockTopicManager = theirs.MockTopicManager
	// QueueTracker is Goka's.
	QueueTracker = theirs.QueueTracker
	// T is Goka's.
	T = theirs.T
	// Tester is Goka's.
	Tester = theirs.Tester
)

// The functions are Goka's, as [github.com/lovoo/goka/tester] describes them.
var (
	New                 = theirs.New
	NewMockTopicManager = theirs.NewMockTopicManager
	WithHeaders         = theirs.WithHeaders
	WithTime            = theirs.WithTime
)

package tester

import (
	"github.com/lovoo/goka"
	"time"

	theirs "github.com/lovoo/goka/tester"
)

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

// New is Goka's.
func New(t T) *Tester {
	return theirs.New(t)
}

// NewMockTopicManager is Goka's.
func NewMockTopicManager(tt *Tester, defaultNumPartitions int, defaultReplFactor int) *MockTopicManager {
	return theirs.NewMockTopicManager(tt, defaultNumPartitions, defaultReplFactor)
}

// WithHeaders is Goka's.
func WithHeaders(headers goka.Headers) EmitOption {
	return theirs.WithHeaders(headers)
}

// WithTime is Goka's.
func WithTime(time time.Time) EmitOption {
	return theirs.WithTime(time)
}

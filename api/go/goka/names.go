package goka

import theirs "github.com/lovoo/goka"

// The types are Goka's.
type (
	// Assignment is Goka's.
	Assignment = theirs.Assignment
	// Backoff is Goka's.
	Backoff = theirs.Backoff
	// BackoffBuilder is Goka's.
	BackoffBuilder = theirs.BackoffBuilder
	// Broker is Goka's.
	Broker = theirs.Broker
	// Codec is Goka's.
	Codec = theirs.Codec
	// ConsumerGroupBuilder is Goka's.
	ConsumerGroupBuilder = theirs.ConsumerGroupBuilder
	// Context is Goka's.
	Context = theirs.Context
	// ContextOption is Goka's.
	ContextOption = theirs.ContextOption
	// ContextWrapper is Goka's.
	ContextWrapper = theirs.ContextWrapper
	// DefaultUpdateContext is Goka's.
	DefaultUpdateContext = theirs.DefaultUpdateContext
	// Edge is Goka's.
	Edge = theirs.Edge
	// Edges is Goka's.
	Edges = theirs.Edges
	// Emitter is Goka's.
	Emitter = theirs.Emitter
	// EmitterOption is Goka's.
	EmitterOption = theirs.EmitterOption
	// Getter is Goka's.
	Getter = theirs.Getter
	// Group is Goka's.
	Group = theirs.Group
	// Headers is Goka's.
	Headers = theirs.Headers
	// InputStats is Goka's.
	InputStats = theirs.InputStats
	// Iterator is Goka's.
	Iterator = theirs.Iterator
	// Logger is Goka's.
	Logger = theirs.Logger
	// NilHandling is Goka's.
	NilHandling = theirs.NilHandling
	// OutputStats is Goka's.
	OutputStats = theirs.OutputStats
	// PPRunMode is Goka's.
	PPRunMode = theirs.PPRunMode
	// PartitionProcStats is Goka's.
	PartitionProcStats = theirs.PartitionProcStats
	// PartitionProcessor is Goka's.
	PartitionProcessor = theirs.PartitionProcessor
	// PartitionStatus is Goka's.
	PartitionStatus = theirs.PartitionStatus
	// PartitionTable is Goka's.
	PartitionTable = theirs.PartitionTable
	// ProcessCallback is Goka's.
	ProcessCallback = theirs.ProcessCallback
	// ProcessorStats is Goka's.
	ProcessorStats = theirs.ProcessorStats
	// Producer is Goka's.
	Producer = theirs.Producer
	// ProducerBuilder is Goka's.
	ProducerBuilder = theirs.ProducerBuilder
	// Promise is Goka's.
	Promise = theirs.Promise
	// PromiseFinisher is Goka's.
	PromiseFinisher = theirs.PromiseFinisher
	// RebalanceCallback is Goka's.
	RebalanceCallback = theirs.RebalanceCallback
	// RecoveryStats is Goka's.
	RecoveryStats = theirs.RecoveryStats
	// SaramaConsumerBuilder is Goka's.
	SaramaConsumerBuilder = theirs.SaramaConsumerBuilder
	// Signal is Goka's.
	Signal = theirs.Signal
	// State is Goka's.
	State = theirs.State
	// StateChangeObserver is Goka's.
	StateChangeObserver = theirs.StateChangeObserver
	// StateReader is Goka's.
	StateReader = theirs.StateReader
	// Stream is Goka's.
	Stream = theirs.Stream
	// Streams is Goka's.
	Streams = theirs.Streams
	// TMConfigMismatchBehavior is Goka's.
	TMConfigMismatchBehavior = theirs.TMConfigMismatchBehavior
	// Table is Goka's.
	Table = theirs.Table
	// TableStats is Goka's.
	TableStats = theirs.TableStats
	// Tester is Goka's.
	Tester = theirs.Tester
	// TopicManager is Goka's.
	TopicManager = theirs.TopicManager
	// TopicManagerBuilder is Goka's.
	TopicManagerBuilder = theirs.TopicManagerBuilder
	// TopicManagerConfig is Goka's.
	TopicManagerConfig = theirs.TopicManagerConfig
	// UpdateCallback is Goka's.
	UpdateCallback = theirs.UpdateCallback
	// UpdateContext is Goka's.
	UpdateContext = theirs.UpdateContext
	// View is Goka's.
	View = theirs.View
	// ViewOption is Goka's.
	ViewOption = theirs.ViewOption
	// ViewState is Goka's.
	ViewState = theirs.ViewState
	// ViewStats is Goka's.
	ViewStats = theirs.ViewStats
)

// The constants are Goka's.
const (
	NilIgnore                      = theirs.NilIgnore
	NilProcess                     = theirs.NilProcess
	NilDecode                      = theirs.NilDecode
	PPStateIdle                    = theirs.PPStateIdle
	PPStateRecovering              = theirs.PPStateRecovering
	PPStateRunning                 = theirs.PPStateRunning
	PPStateStopping                = theirs.PPStateStopping
	PPStateStopped                 = theirs.PPStateStopped
	ProcStateIdle                  = theirs.ProcStateIdle
	ProcStateStarting              = theirs.ProcStateStarting
	ProcStateSetup                 = theirs.ProcStateSetup
	ProcStateRunning               = theirs.ProcStateRunning
	ProcStateStopping              = theirs.ProcStateStopping
	ProcStateStopped               = theirs.ProcStateStopped
	PartitionStopped               = theirs.PartitionStopped
	PartitionInitializing          = theirs.PartitionInitializing
	PartitionConnecting            = theirs.PartitionConnecting
	PartitionRecovering            = theirs.PartitionRecovering
	PartitionPreparing             = theirs.PartitionPreparing
	PartitionRunning               = theirs.PartitionRunning
	TMConfigMismatchBehaviorIgnore = theirs.TMConfigMismatchBehaviorIgnore
	TMConfigMismatchBehaviorWarn   = theirs.TMConfigMismatchBehaviorWarn
	TMConfigMismatchBehaviorFail   = theirs.TMConfigMismatchBehaviorFail
	ViewStateIdle                  = theirs.ViewStateIdle
	ViewStateInitializing          = theirs.ViewStateInitializing
	ViewStateConnecting            = theirs.ViewStateConnecting
	ViewStateCatchUp               = theirs.ViewStateCatchUp
	ViewStateRunning               = theirs.ViewStateRunning
)

// The variables are Goka's.
var (
	CopartitioningStrategy       = theirs.CopartitioningStrategy
	ErrEmitterAlreadyClosed      = theirs.ErrEmitterAlreadyClosed
	ErrVisitAborted              = theirs.ErrVisitAborted
	StrictCopartitioningStrategy = theirs.StrictCopartitioningStrategy
)

// The functions are Goka's, as [github.com/lovoo/goka] describes them.
var (
	ConsumerGroupBuilderWithConfig = theirs.ConsumerGroupBuilderWithConfig
	Debug                          = theirs.Debug
	DefaultBackoffBuilder          = theirs.DefaultBackoffBuilder
	DefaultConfig                  = theirs.DefaultConfig
	DefaultConsumerGroupBuilder    = theirs.DefaultConsumerGroupBuilder
	DefaultHasher                  = theirs.DefaultHasher
	DefaultLogger                  = theirs.DefaultLogger
	DefaultProcessorStoragePath    = theirs.DefaultProcessorStoragePath
	DefaultProducerBuilder         = theirs.DefaultProducerBuilder
	DefaultRebalance               = theirs.DefaultRebalance
	DefaultUpdate                  = theirs.DefaultUpdate
	DefaultViewStoragePath         = theirs.DefaultViewStoragePath
	GroupTable                     = theirs.GroupTable
	HeadersFromSarama              = theirs.HeadersFromSarama
	NewEmitter                     = theirs.NewEmitter
	NewProducer                    = theirs.NewProducer
	NewPromise                     = theirs.NewPromise
	NewPromiseWithFinisher         = theirs.NewPromiseWithFinisher
	NewSignal                      = theirs.NewSignal
	NewSimpleBackoff               = theirs.NewSimpleBackoff
	NewTopicManagerConfig          = theirs.NewTopicManagerConfig
	ProducerBuilderWithConfig      = theirs.ProducerBuilderWithConfig
	ResetSuffixes                  = theirs.ResetSuffixes
	SetLoopSuffix                  = theirs.SetLoopSuffix
	SetSaramaLogger                = theirs.SetSaramaLogger
	SetTableSuffix                 = theirs.SetTableSuffix
	StringsToStreams               = theirs.StringsToStreams
	WithCtxEmitHeaders             = theirs.WithCtxEmitHeaders
	WithEmitterClientID            = theirs.WithEmitterClientID
	WithEmitterDefaultHeaders      = theirs.WithEmitterDefaultHeaders
	WithEmitterHasher              = theirs.WithEmitterHasher
	WithEmitterLogger              = theirs.WithEmitterLogger
	WithEmitterProducerBuilder     = theirs.WithEmitterProducerBuilder
	WithEmitterTester              = theirs.WithEmitterTester
	WithEmitterTopicManagerBuilder = theirs.WithEmitterTopicManagerBuilder
	WithViewAutoReconnect          = theirs.WithViewAutoReconnect
	WithViewBackoffBuilder         = theirs.WithViewBackoffBuilder
	WithViewBackoffResetTimeout    = theirs.WithViewBackoffResetTimeout
	WithViewCallback               = theirs.WithViewCallback
	WithViewClientID               = theirs.WithViewClientID
	WithViewConsumerSaramaBuilder  = theirs.WithViewConsumerSaramaBuilder
	WithViewHasher                 = theirs.WithViewHasher
	WithViewLogger                 = theirs.WithViewLogger
	WithViewRestartable            = theirs.WithViewRestartable
	WithViewStorageBuilder         = theirs.WithViewStorageBuilder
	WithViewTester                 = theirs.WithViewTester
	WithViewTopicManagerBuilder    = theirs.WithViewTopicManagerBuilder
)

package goka

import theirs "github.com/lovoo/goka"

// These types are aliases of Goka's types.
type (
	// Assignment is an alias of Goka's type.
	Assignment = theirs.Assignment
	// Backoff is an alias of Goka's type.
	Backoff = theirs.Backoff
	// BackoffBuilder is an alias of Goka's type.
	BackoffBuilder = theirs.BackoffBuilder
	// Broker is an alias of Goka's type.
	Broker = theirs.Broker
	// Codec is an alias of Goka's type.
	Codec = theirs.Codec
	// ConsumerGroupBuilder is an alias of Goka's type.
	ConsumerGroupBuilder = theirs.ConsumerGroupBuilder
	// Context is an alias of Goka's type.
	Context = theirs.Context
	// ContextOption is an alias of Goka's type.
	ContextOption = theirs.ContextOption
	// ContextWrapper is an alias of Goka's type.
	ContextWrapper = theirs.ContextWrapper
	// DefaultUpdateContext is an alias of Goka's type.
	DefaultUpdateContext = theirs.DefaultUpdateContext
	// Edge is an alias of Goka's type.
	Edge = theirs.Edge
	// Edges is an alias of Goka's type.
	Edges = theirs.Edges
	// Emitter is an alias of Goka's type.
	Emitter = theirs.Emitter
	// EmitterOption is an alias of Goka's type.
	EmitterOption = theirs.EmitterOption
	// Getter is an alias of Goka's type.
	Getter = theirs.Getter
	// Group is an alias of Goka's type.
	Group = theirs.Group
	// Headers is an alias of Goka's type.
	Headers = theirs.Headers
	// InputStats is an alias of Goka's type.
	InputStats = theirs.InputStats
	// Iterator is an alias of Goka's type.
	Iterator = theirs.Iterator
	// Logger is an alias of Goka's type.
	Logger = theirs.Logger
	// NilHandling is an alias of Goka's type.
	NilHandling = theirs.NilHandling
	// OutputStats is an alias of Goka's type.
	OutputStats = theirs.OutputStats
	// PPRunMode is an alias of Goka's type.
	PPRunMode = theirs.PPRunMode
	// PartitionProcStats is an alias of Goka's type.
	PartitionProcStats = theirs.PartitionProcStats
	// PartitionProcessor is an alias of Goka's type.
	PartitionProcessor = theirs.PartitionProcessor
	// PartitionStatus is an alias of Goka's type.
	PartitionStatus = theirs.PartitionStatus
	// PartitionTable is an alias of Goka's type.
	PartitionTable = theirs.PartitionTable
	// ProcessCallback is an alias of Goka's type.
	ProcessCallback = theirs.ProcessCallback
	// ProcessorStats is an alias of Goka's type.
	ProcessorStats = theirs.ProcessorStats
	// Producer is an alias of Goka's type.
	Producer = theirs.Producer
	// ProducerBuilder is an alias of Goka's type.
	ProducerBuilder = theirs.ProducerBuilder
	// Promise is an alias of Goka's type.
	Promise = theirs.Promise
	// PromiseFinisher is an alias of Goka's type.
	PromiseFinisher = theirs.PromiseFinisher
	// RebalanceCallback is an alias of Goka's type.
	RebalanceCallback = theirs.RebalanceCallback
	// RecoveryStats is an alias of Goka's type.
	RecoveryStats = theirs.RecoveryStats
	// SaramaConsumerBuilder is an alias of Goka's type.
	SaramaConsumerBuilder = theirs.SaramaConsumerBuilder
	// Signal is an alias of Goka's type.
	Signal = theirs.Signal
	// State is an alias of Goka's type.
	State = theirs.State
	// StateChangeObserver is an alias of Goka's type.
	StateChangeObserver = theirs.StateChangeObserver
	// StateReader is an alias of Goka's type.
	StateReader = theirs.StateReader
	// Stream is an alias of Goka's type.
	Stream = theirs.Stream
	// Streams is an alias of Goka's type.
	Streams = theirs.Streams
	// TMConfigMismatchBehavior is an alias of Goka's type.
	TMConfigMismatchBehavior = theirs.TMConfigMismatchBehavior
	// Table is an alias of Goka's type.
	Table = theirs.Table
	// TableStats is an alias of Goka's type.
	TableStats = theirs.TableStats
	// Tester is an alias of Goka's type.
	Tester = theirs.Tester
	// TopicManager is an alias of Goka's type.
	TopicManager = theirs.TopicManager
	// TopicManagerBuilder is an alias of Goka's type.
	TopicManagerBuilder = theirs.TopicManagerBuilder
	// TopicManagerConfig is an alias of Goka's type.
	TopicManagerConfig = theirs.TopicManagerConfig
	// UpdateCallback is an alias of Goka's type.
	UpdateCallback = theirs.UpdateCallback
	// UpdateContext is an alias of Goka's type.
	UpdateContext = theirs.UpdateContext
	// View is an alias of Goka's type.
	View = theirs.View
	// ViewOption is an alias of Goka's type.
	ViewOption = theirs.ViewOption
	// ViewState is an alias of Goka's type.
	ViewState = theirs.ViewState
	// ViewStats is an alias of Goka's type.
	ViewStats = theirs.ViewStats
)

// These are Goka's constants.
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

// These are Goka's variables.
var (
	CopartitioningStrategy       = theirs.CopartitioningStrategy
	ErrEmitterAlreadyClosed      = theirs.ErrEmitterAlreadyClosed
	ErrVisitAborted              = theirs.ErrVisitAborted
	StrictCopartitioningStrategy = theirs.StrictCopartitioningStrategy
)

// These are Goka's functions. See [github.com/lovoo/goka].
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

package goka

import theirs "github.com/lovoo/goka"

// These types are aliases of Goka's types.
type (
	Assignment               = theirs.Assignment
	Backoff                  = theirs.Backoff
	BackoffBuilder           = theirs.BackoffBuilder
	Broker                   = theirs.Broker
	Codec                    = theirs.Codec
	ConsumerGroupBuilder     = theirs.ConsumerGroupBuilder
	Context                  = theirs.Context
	ContextOption            = theirs.ContextOption
	ContextWrapper           = theirs.ContextWrapper
	DefaultUpdateContext     = theirs.DefaultUpdateContext
	Edge                     = theirs.Edge
	Edges                    = theirs.Edges
	Emitter                  = theirs.Emitter
	EmitterOption            = theirs.EmitterOption
	Getter                   = theirs.Getter
	Group                    = theirs.Group
	Headers                  = theirs.Headers
	InputStats               = theirs.InputStats
	Iterator                 = theirs.Iterator
	Logger                   = theirs.Logger
	NilHandling              = theirs.NilHandling
	OutputStats              = theirs.OutputStats
	PPRunMode                = theirs.PPRunMode
	PartitionProcStats       = theirs.PartitionProcStats
	PartitionProcessor       = theirs.PartitionProcessor
	PartitionStatus          = theirs.PartitionStatus
	PartitionTable           = theirs.PartitionTable
	ProcessCallback          = theirs.ProcessCallback
	ProcessorStats           = theirs.ProcessorStats
	Producer                 = theirs.Producer
	ProducerBuilder          = theirs.ProducerBuilder
	Promise                  = theirs.Promise
	PromiseFinisher          = theirs.PromiseFinisher
	RebalanceCallback        = theirs.RebalanceCallback
	RecoveryStats            = theirs.RecoveryStats
	SaramaConsumerBuilder    = theirs.SaramaConsumerBuilder
	Signal                   = theirs.Signal
	State                    = theirs.State
	StateChangeObserver      = theirs.StateChangeObserver
	StateReader              = theirs.StateReader
	Stream                   = theirs.Stream
	Streams                  = theirs.Streams
	TMConfigMismatchBehavior = theirs.TMConfigMismatchBehavior
	Table                    = theirs.Table
	TableStats               = theirs.TableStats
	Tester                   = theirs.Tester
	TopicManager             = theirs.TopicManager
	TopicManagerBuilder      = theirs.TopicManagerBuilder
	TopicManagerConfig       = theirs.TopicManagerConfig
	UpdateCallback           = theirs.UpdateCallback
	UpdateContext            = theirs.UpdateContext
	View                     = theirs.View
	ViewOption               = theirs.ViewOption
	ViewState                = theirs.ViewState
	ViewStats                = theirs.ViewStats
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
	Debug                          = theirs.Debug
	DefaultBackoffBuilder          = theirs.DefaultBackoffBuilder
	DefaultConfig                  = theirs.DefaultConfig
	DefaultHasher                  = theirs.DefaultHasher
	DefaultLogger                  = theirs.DefaultLogger
	DefaultProcessorStoragePath    = theirs.DefaultProcessorStoragePath
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

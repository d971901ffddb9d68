package goka

import (
	"context"
	"sync"
	"sync/atomic"

	theirs "github.com/lovoo/goka"
)

// Processor processes the messages of a group: it runs the group's callbacks in this process, and the runtime as a
// child process. Except for Run, its methods may be called concurrently.
type Processor struct {
	brokers    []string
	graph      *GroupGraph
	group      *group
	tested     *theirs.Processor // Goka's own processor under its tester; then the other fields are not used
	state      *Signal
	running    atomic.Pointer[context.Context]
	table      tableView
	checkpoint string

	mutex  sync.Mutex
	cancel context.CancelCauseFunc
	err    error
	done   chan struct{}
}

// NewProcessor returns a processor for a graph. It connects to the brokers, checks that the topics which the group
// reads exist, and creates the topics of its loop and table. Errors have Goka's texts.
func NewProcessor(brokers []string, gg *GroupGraph, options ...ProcessorOption) (*Processor, error) {
	if err := gg.Validate(); err != nil {
		return nil, err
	}
	applied := newOptions(gg, options)
	if applied.isTested {
		tested, err := theirs.NewProcessor(brokers, gg.goka, applied.goka...)
		if err != nil {
			return nil, err
		}
		return &Processor{graph: gg, tested: tested}, nil
	}
	p := &Processor{
		brokers: brokers, graph: gg, done: make(chan struct{}),
		state: NewSignal(ProcStateIdle, ProcStateStarting, ProcStateSetup, ProcStateRunning, ProcStateStopping, ProcStateStopped),
	}
	var err error
	if p.group, err = newGroup(gg, applied, p.context); err != nil {
		return nil, err
	}
	p.group.abort = p.abort
	p.group.logNotes()
	p.checkpoint = checkpointOf(gg.Group(), brokers)
	if err := p.group.prepareTopics(brokers); err != nil {
		return nil, err
	}
	return p, p.group.makeLookups(brokers)
}

// Graph returns the graph of the processor.
func (p *Processor) Graph() *GroupGraph { return p.graph }

// Run processes messages until the context ends, Stop is called, or an error occurs. In the first two cases it returns
// nil. Run starts `wallaroo run`, which calls the callbacks in this process. The error of a callback has Goka's text.
// When Run returns, all processes that it started have ended. Run can be called only once.
func (p *Processor) Run(ctx context.Context) error {
	if p.tested != nil {
		return p.tested.Run(ctx)
	}
	return runAll(ctx, []*Processor{p}, p.checkpoint)
}

// begin marks the processor as starting. It stores the context of the run, the function that cancels this context, and
// the run's checkpoint, for the other methods.
func (p *Processor) begin(ctx context.Context, cancel context.CancelCauseFunc, checkpoint string) {
	p.running.Store(&ctx)
	p.mutex.Lock()
	p.cancel, p.checkpoint = cancel, checkpoint
	p.mutex.Unlock()
	p.state.SetState(ProcStateStarting)
}

// finish stores the result of a run whose context has ended, and marks the processor as stopped.
func (p *Processor) finish(err error) {
	p.table.wait()
	p.state.SetState(ProcStateStopped)
	p.mutex.Lock()
	p.err = err
	p.mutex.Unlock()
	close(p.done)
}

// abort ends the run with an error.
func (p *Processor) abort(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cancel(err)
}

// context returns the context of the run, or one that never ends if Run was not called.
func (p *Processor) context() context.Context {
	if running := p.running.Load(); running != nil {
		return *running
	}
	return context.Background()
}

// Stop ends the run, like the end of Run's context. It does not wait.
func (p *Processor) Stop() {
	if p.tested != nil {
		p.tested.Stop()
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.cancel != nil {
		p.cancel(context.Canceled)
	}
}

// Done returns a channel that is closed when the run has ended.
func (p *Processor) Done() <-chan struct{} {
	if p.tested != nil {
		return p.tested.Done()
	}
	return p.done
}

// Error returns the error with which Run has ended, or nil.
func (p *Processor) Error() error {
	if p.tested != nil {
		return p.tested.Error()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.err
}

// Recovered reports whether the processor is processing messages.
func (p *Processor) Recovered() bool { return p.StateReader().IsState(ProcStateRunning) }

// StateReader returns an object with which the program reads the processor's state, or waits until the processor has a
// certain state, such as ProcStateRunning.
func (p *Processor) StateReader() StateReader {
	if p.tested != nil {
		return p.tested.StateReader()
	}
	return p.state
}

// WaitForReady waits until the processor processes messages or the run has ended.
func (p *Processor) WaitForReady() error { return p.WaitForReadyContext(context.Background()) }

// WaitForReadyContext is WaitForReady with a context. It returns the context's error if the context ends first.
func (p *Processor) WaitForReadyContext(ctx context.Context) error {
	if p.tested != nil {
		return p.tested.WaitForReadyContext(ctx)
	}
	select {
	case <-p.state.WaitForState(ProcStateRunning):
		return nil
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats returns the numbers of messages that this process has read and written, in the form of Goka's statistics.
func (p *Processor) Stats() *ProcessorStats { return p.StatsWithContext(context.Background()) }

// StatsWithContext is Stats with a context for the statistics of lookups.
func (p *Processor) StatsWithContext(ctx context.Context) *ProcessorStats {
	if p.tested != nil {
		return p.tested.StatsWithContext(ctx)
	}
	stats := &ProcessorStats{Group: p.group.counts.snapshot(p.graph, p.group.count), Lookup: map[string]*ViewStats{}}
	for topic, view := range p.group.lookups {
		stats.Lookup[topic] = view.Stats(ctx)
	}
	return stats
}

package goka

import (
	"context"
	"sync"
	"sync/atomic"

	theirs "github.com/lovoo/goka"
)

// Processor runs the callbacks of a group. Its methods but Run may be called by several goroutines.
type Processor struct {
	brokers    []string
	graph      *GroupGraph
	group      *group
	tested     *theirs.Processor // Goka's own, under its tester; then nothing else is used
	state      *Signal
	running    atomic.Pointer[context.Context]
	table      tableView
	checkpoint string

	mutex  sync.Mutex
	cancel context.CancelCauseFunc
	err    error
	done   chan struct{}
}

// NewProcessor makes a processor of a graph. It connects to the brokers, looks whether the topics that the group reads exist, and creates
// those of its loop and table. Errors have Goka's texts.
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

// Graph returns the graph.
func (p *Processor) Graph() *GroupGraph { return p.graph }

// Run serves the callbacks from this process and runs `wallaroo run` until the context ends, Stop is called, or something fails; it returns
// nil in the first two cases. An error of a callback has Goka's text. No process that it started is left. It can be called once.
func (p *Processor) Run(ctx context.Context) error {
	if p.tested != nil {
		return p.tested.Run(ctx)
	}
	return runAll(ctx, []*Processor{p}, p.checkpoint)
}

// begin notes that the processor runs, as long as a context.
func (p *Processor) begin(ctx context.Context, cancel context.CancelCauseFunc, checkpoint string) {
	p.running.Store(&ctx)
	p.mutex.Lock()
	p.cancel, p.checkpoint = cancel, checkpoint
	p.mutex.Unlock()
	p.state.SetState(ProcStateStarting)
}

// finish notes how the run has ended; its context has ended before.
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

// context returns that of the run.
func (p *Processor) context() context.Context {
	if running := p.running.Load(); running != nil {
		return *running
	}
	return context.Background()
}

// Stop ends the run, as the end of its context does. It does not wait.
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

// Done is closed when the run has ended.
func (p *Processor) Done() <-chan struct{} {
	if p.tested != nil {
		return p.tested.Done()
	}
	return p.done
}

// Error returns the error that Run returned.
func (p *Processor) Error() error {
	if p.tested != nil {
		return p.tested.Error()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.err
}

// Recovered reports whether messages are being processed.
func (p *Processor) Recovered() bool { return p.StateReader().IsState(ProcStateRunning) }

// StateReader returns the state of the processor.
func (p *Processor) StateReader() StateReader {
	if p.tested != nil {
		return p.tested.StateReader()
	}
	return p.state
}

// WaitForReady returns when messages are being processed, or the run has ended.
func (p *Processor) WaitForReady() error { return p.WaitForReadyContext(context.Background()) }

// WaitForReadyContext is WaitForReady, until the context ends.
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

// Stats returns the counts of this process, in the shape of Goka's statistics.
func (p *Processor) Stats() *ProcessorStats { return p.StatsWithContext(context.Background()) }

// StatsWithContext is Stats, until the context ends.
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

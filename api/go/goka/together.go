package goka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/lovoo/goka/multierr"
)

// RunTogether runs processors as one application in one runtime. [Processor.Run] would start a runtime for each of
// them. RunTogether returns when the context ends, one of the processors is stopped, or one of them fails. The state of
// the processors is in a checkpoint for exactly this combination of groups. It does not contain the state of other
// combinations, or of a group that ran alone. All processors must have the same brokers, in any order, and different
// names of visitors. Goka has no such function.
func RunTogether(ctx context.Context, processors ...*Processor) error {
	if len(processors) == 0 {
		return errors.New("no processors to run together")
	}
	if slices.Contains(processors, nil) {
		return errors.New("one of the processors to run together is nil: NewProcessor has failed for it and returned an error")
	}
	if !slices.ContainsFunc(processors, func(p *Processor) bool { return p.tested == nil }) { // under Goka's tester, each processor runs by itself
		running, inner := multierr.NewErrGroup(ctx)
		for _, p := range processors {
			running.Go(func() error { return p.Run(inner) })
		}
		return running.Wait().ErrorOrNil()
	}
	if err := checkTogether(processors); err != nil {
		return err
	}
	first := processors[0]
	if len(processors) == 1 {
		return first.Run(ctx)
	}
	var names []string
	for _, p := range processors {
		names = append(names, string(p.graph.Group()))
	}
	slices.Sort(names) // the checkpoint must not depend on the order of the arguments
	return runAll(ctx, processors, checkpointOf(Group(strings.Join(names, " + ")), first.brokers))
}

// checkTogether returns an error if the processors cannot be one application.
func checkTogether(processors []*Processor) error {
	groups, visitors := map[Group]bool{}, map[string]Group{}
	for _, p := range processors {
		name := p.graph.Group()
		if err := checkPair(processors[0], p); err != nil {
			return fmt.Errorf("processors of %s and %s do not run together: %w", processors[0].graph.Group(), name, err)
		}
		if groups[name] {
			return fmt.Errorf("two processors of %s do not run together: a group has one", name)
		}
		groups[name] = true
		for _, e := range p.graph.edges[visitor] {
			if other, has := visitors[e.Topic()]; has {
				return fmt.Errorf("processors of %s and %s do not run together: both have a visitor %s", other, name, e.Topic())
			}
			visitors[e.Topic()] = name
		}
	}
	return nil
}

// checkPair returns an error if two processors have different brokers, or if only one of them has Goka's tester. The
// order of the brokers does not matter.
func checkPair(one, other *Processor) error {
	if one.tested != nil && other.tested == nil {
		one, other = other, one
	}
	if one.tested == nil && other.tested != nil {
		return fmt.Errorf("%s has Goka's tester, %s has none; give all of them or none WithTester", other.graph.Group(), one.graph.Group())
	}
	if !slices.Equal(slices.Sorted(slices.Values(one.brokers)), slices.Sorted(slices.Values(other.brokers))) {
		return fmt.Errorf("their brokers differ: %s, and %s", strings.Join(one.brokers, ","), strings.Join(other.brokers, ","))
	}
	return nil
}

// runAll runs one or more processors as one application with this checkpoint, and returns the error of the run.
func runAll(ctx context.Context, all []*Processor, checkpoint string) error {
	for _, p := range all {
		select {
		case <-p.done:
			return errors.New("error running processor: it was already run and terminated. Run can only be called once")
		default:
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	for _, p := range all {
		p.begin(ctx, cancel, checkpoint)
	}
	err := multierror.Append(nil, outcome(ctx, all, serve(ctx, all, checkpoint))).ErrorOrNil()
	cancel(context.Canceled)
	for _, p := range all {
		p.finish(err)
	}
	return err
}

// outcome returns the error of a run: the first failure of a callback, or the error that ended the run. It returns nil
// if the program ended the run.
func outcome(ctx context.Context, all []*Processor, err error) error {
	for _, p := range all {
		if failed := p.group.failed.get(); failed != nil {
			return failed
		}
	}
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if open := running(all); open != "" {
		return fmt.Errorf("the run has ended without a callback that has not returned, whose message the next run repeats: %s", open)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve starts lookups, worker and runtime, and waits until the runtime ends.
func serve(ctx context.Context, all []*Processor, checkpoint string) error {
	if mode := os.Getenv("WALLAROO_MODE"); mode != "" {
		return fmt.Errorf("the runtime started this program (WALLAROO_MODE=%s), and Run would start the runtime: call goka.Serve first in main", mode)
	}
	for _, p := range all {
		if err := p.group.runLookups(ctx, p.abort); err != nil {
			return err
		}
	}
	setState(all, ProcStateSetup)
	for _, p := range all {
		p.group.assign()
	}
	return host(ctx, all, checkpoint)
}

// setState sets the state that StateReader returns, for all processors.
func setState(all []*Processor, state State) {
	for _, p := range all {
		p.state.SetState(state)
	}
}

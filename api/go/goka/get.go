package goka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lovoo/goka/storage"
)

// tableView holds the view (Goka's copy of a table topic) of the group's table. Get reads from this view, and the first
// call of Get starts it.
type tableView struct {
	mutex sync.Mutex
	view  *View
	ended chan struct{}
}

// Get returns the value of a key in the group's table, or nil if the key has none. It reads the table topic, which
// contains the output of all delivered micro-batches. The first call waits until the whole topic has been read. Get
// finds the keys of all partitions.
func (p *Processor) Get(key string) (any, error) {
	switch {
	case p.tested != nil:
		return p.tested.Get(key)
	case p.graph.GroupTable() == nil:
		return nil, errors.New("can't get a value from stateless processor")
	}
	view, ended, err := p.openTable()
	if err != nil {
		return nil, fmt.Errorf("error getting %s: %v", key, err)
	}
	select {
	case <-view.WaitRunning():
	case <-ended:
		return nil, fmt.Errorf("error getting %s: the processor has ended", key)
	}
	value, err := view.Get(key)
	if err != nil {
		return nil, fmt.Errorf("error getting %s: %v", key, err)
	}
	return value, nil
}

// openTable returns the view of the group's table, and a channel that is closed when the view has ended. The first call
// during a run starts the view.
func (p *Processor) openTable() (*View, <-chan struct{}, error) {
	t := &p.table
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.view != nil {
		return t.view, t.ended, nil
	}
	if p.running.Load() == nil || p.context().Err() != nil {
		return nil, nil, errors.New("the processor does not run")
	}
	view, err := p.group.view(p.brokers, p.graph.GroupTable(), storage.MemoryBuilder())
	if err != nil {
		return nil, nil, err
	}
	ctx, ended := p.context(), make(chan struct{})
	t.view, t.ended = view, ended
	go func() {
		defer close(ended)
		if err := view.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			p.group.options.log.Printf("processor %s: the view of its table ended: %v", p.graph.Group(), err)
		}
	}()
	return view, ended, nil
}

// wait waits until the view has ended, if there is one. End the context of the run first, so that Get cannot start
// another view.
func (t *tableView) wait() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.ended != nil {
		<-t.ended
	}
}

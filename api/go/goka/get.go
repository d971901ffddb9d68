package goka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lovoo/goka/storage"
)

// tableView reads the group's table topic for Get, from the first call on.
type tableView struct {
	once  sync.Once
	view  *View
	err   error
	ended chan struct{}
}

// Get returns the value of a key in the group's table; nil if it has none. It reads the table topic, which has what the last
// micro-batch that was delivered wrote; the first call waits until all of the topic was read. Keys of all partitions can be read.
func (p *Processor) Get(key string) (any, error) {
	switch {
	case p.tested != nil:
		return p.tested.Get(key)
	case p.graph.GroupTable() == nil:
		return nil, errors.New("can't get a value from stateless processor")
	}
	p.table.once.Do(p.openTable)
	if p.table.err != nil {
		return nil, fmt.Errorf("error getting %s: %v", key, p.table.err)
	}
	select {
	case <-p.table.view.WaitRunning():
	case <-p.table.ended:
		return nil, fmt.Errorf("error getting %s: the processor has ended", key)
	}
	value, err := p.table.view.Get(key)
	if err != nil {
		return nil, fmt.Errorf("error getting %s: %v", key, err)
	}
	return value, nil
}

func (p *Processor) openTable() {
	if p.running.Load() == nil {
		p.table.err = errors.New("the processor does not run")
		return
	}
	view, err := p.group.view(p.brokers, p.graph.GroupTable(), storage.MemoryBuilder())
	if err != nil {
		p.table.err = err
		return
	}
	p.table.view, p.table.ended = view, make(chan struct{})
	ctx := p.context()
	go func() {
		defer close(p.table.ended)
		if err := view.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			p.group.options.log.Printf("processor %s: the view of its table ended: %v", p.graph.Group(), err)
		}
	}()
}

// wait returns when the view has ended, after the end of its context.
func (t *tableView) wait() {
	t.once.Do(func() { t.err = errors.New("the processor has ended") })
	if t.ended != nil {
		<-t.ended
	}
}

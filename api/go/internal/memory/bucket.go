package memory

import (
	"maps"
	"slices"

	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/topology"
)

// mostEntries is the number of entries of a state log above which it is compacted.
const mostEntries = 16

// bucket holds the states of one bucket: as a state log, and also as live objects if they are kept between calls.
type bucket struct {
	log  [][]byte
	live *state.Bucket
}

// run processes the frames of one bucket in a micro-batch.
func (b *bucket) run(executor *stage.Executor, frames []byte, settings Settings) ([]stage.OutputFrame, error) {
	live, err := b.take(executor)
	if err != nil {
		return nil, err
	}
	isWhole := settings.wantsSnapshot()
	outputs, err := b.call(executor, live, frames, isWhole, settings.keepsLive())
	if err == nil && len(b.log) > mostEntries {
		err = b.compact(executor)
	}
	return outputs, err
}

// call processes frames with the live states, and appends the changed states to the log. With isWhole it writes all
// states as a new log.
func (b *bucket) call(executor *stage.Executor, live *state.Bucket, frames []byte, isWhole, keepsLive bool) ([]stage.OutputFrame, error) {
	call := executor.NewCall(live, func() (*state.Bucket, error) { return b.load(executor) })
	if err := call.Run(frames); err != nil {
		return nil, err
	}
	outputs, changes, live, err := call.Finish(isWhole)
	if err != nil {
		return nil, err
	}
	if isWhole {
		b.log = nil
	}
	b.log = append(b.log, changes...)
	if keepsLive {
		b.live = live
	}
	return outputs, nil
}

// compact replaces the log by the minimum number of entries.
func (b *bucket) compact(executor *stage.Executor) error {
	loaded, err := b.load(executor)
	if err == nil {
		_, err = b.call(executor, loaded, nil, true, b.live != nil)
	}
	return err
}

// take returns the live states and forgets them, because a failed call leaves them unusable. If there are none, it
// loads them from the log.
func (b *bucket) take(executor *stage.Executor) (*state.Bucket, error) {
	live := b.live
	if live == nil {
		return b.load(executor)
	}
	b.live = nil
	return live, nil
}

// load builds the live states from a copy of the log, because states may keep its bytes, and change them.
func (b *bucket) load(executor *stage.Executor) (*state.Bucket, error) {
	loader := executor.NewLoader()
	for _, entry := range b.log {
		if err := loader.Load(slices.Clone(entry)); err != nil {
			return nil, err
		}
	}
	return loader.Bucket(), loader.End()
}

// HasState reports whether the application has a state with a name.
func (e *Engine) HasState(name string) bool {
	_, has := e.plan.States[name]
	return has
}

// States returns the names of the states.
func (e *Engine) States() []string { return slices.Sorted(maps.Keys(e.plan.States)) }

// State returns the state of a key as read from the log, or nil if the key has none.
func (e *Engine) State(name string, key []byte) (any, error) {
	table, err := e.table(name, topology.Bucket(key, e.settings.Buckets))
	if err != nil {
		return nil, err
	}
	if entry := table.Get(key); entry != nil {
		return entry.Value, nil
	}
	return nil, nil
}

// Keys returns the keys that have a state of this name, in no particular order.
func (e *Engine) Keys(name string) (keys []string, err error) {
	for number := range e.settings.Buckets {
		table, err := e.table(name, number)
		if err != nil {
			return nil, err
		}
		for entry := range table.Entries() {
			keys = append(keys, entry.Key)
		}
	}
	return keys, nil
}

// table reads the states with a name in one bucket from the log. The application must have a state with this name.
func (e *Engine) table(name string, number uint32) (*state.Table, error) {
	level := e.levels[e.plan.States[name]]
	kept := level.buckets[number]
	if kept == nil {
		kept = &bucket{}
	}
	loaded, err := kept.load(level.executor)
	if err != nil {
		return nil, err
	}
	return loaded.Table(e.plan.StatePorts[name]), nil
}

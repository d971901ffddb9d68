package state

import (
	"iter"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/timing"
)

const (
	// entryBytes is what a key costs besides its state.
	entryBytes = 128
	// liveFactor is how much more memory a state takes than its serialized form: maps and texts three to five times as
	// much, one long text hardly more.
	liveFactor = 3
)

// Bucket is the live state of one bucket's keys, used by one call at a time.
type Bucket struct {
	Version Version
	tables  map[uint16]*Table // by the port of the state in state logs
	bytes   int64
}

// NewBucket returns the empty bucket.
func NewBucket() *Bucket { return &Bucket{tables: map[uint16]*Table{}} }

// Bytes returns the estimated size.
func (b *Bucket) Bytes() int64 { return b.bytes }

// Keys returns the number of keys.
func (b *Bucket) Keys() int {
	keys := 0
	for _, table := range b.tables {
		keys += len(table.entries)
	}
	return keys
}

// Table returns the states of one name, by the port in state logs.
func (b *Bucket) Table(port uint16) *Table {
	table, ok := b.tables[port]
	if !ok {
		table = &Table{Port: port, bucket: b, entries: map[string]*Entry{}}
		b.tables[port] = table
	}
	return table
}

// Tables calls visit for each table.
func (b *Bucket) Tables(visit func(*Table) error) error {
	for _, table := range b.tables {
		if err := visit(table); err != nil {
			return err
		}
	}
	return nil
}

// Table holds the states of one name in one bucket.
type Table struct {
	Port     uint16
	Calendar any // what a window step keeps in addition to the states
	times    *calendar.Calendar[*timing.KeyTime]
	bucket   *Bucket
	entries  map[string]*Entry
	dirty    []*Entry
	dropped  map[string]bool // keys whose states are to be taken out of the log
}

// Entry is the state of one key.
type Entry struct {
	Key   string
	Value any
	Time  *timing.KeyTime // nil where the key has none
	bytes int
	dirty bool
	saved bool // the log has a state of the key
	size  int  // of the state in the log
}

// Logged returns the serialized size of the state that the log has of the key, 0 if none.
func (e *Entry) Logged() int { return e.size }

// SetLogged notes that size.
func (e *Entry) SetLogged(size int) { e.size = size }

// IsKept reports whether the log has, or will get, a state of the key.
func (e *Entry) IsKept() bool { return e.saved || e.dirty }

// Get returns the entry of a key, nil when it has no state.
func (t *Table) Get(key []byte) *Entry { return t.entries[string(key)] }

// Add gives a key, which must not have state, a state.
func (t *Table) Add(key []byte, value any) *Entry {
	entry := &Entry{Key: string(key), Value: value, bytes: entryBytes + len(key)}
	t.entries[entry.Key] = entry
	t.bucket.bytes += int64(entry.bytes)
	return entry
}

// Times returns the calendar of the keys' times, made of them where the table has none yet. A key that has no time begins to have one.
func (t *Table) Times(rules *timing.StateRules) *calendar.Calendar[*timing.KeyTime] {
	if t.times == nil {
		t.times = rules.Calendar()
		for _, entry := range t.entries {
			if entry.Time == nil {
				entry.Time = rules.New(entry.Key)
			}
		}
		t.times.Fill(t.EachTime())
	}
	return t.times
}

// EachTime yields the keys' times.
func (t *Table) EachTime() iter.Seq[*timing.KeyTime] {
	return func(yield func(*timing.KeyTime) bool) {
		for _, entry := range t.entries {
			if entry.Time != nil && !yield(entry.Time) {
				return
			}
		}
	}
}

// Drop takes the state of a key away, out of the log too.
func (t *Table) Drop(key string) {
	entry, ok := t.entries[key]
	if !ok {
		return
	}
	if entry.saved {
		if t.dropped == nil {
			t.dropped = map[string]bool{}
		}
		t.dropped[key] = true
	}
	t.Remove(key)
}

// Dropped calls visit for each key whose state in the log Changes has not replaced. Then none are left.
func (t *Table) Dropped(visit func(key string) error) error {
	for key := range t.dropped {
		if err := visit(key); err != nil {
			return err
		}
	}
	t.dropped = nil
	return nil
}

// Entries calls visit for each entry.
func (t *Table) Entries(visit func(*Entry)) {
	for _, entry := range t.entries {
		visit(entry)
	}
}

// Remove takes the state of a key away, if it has one.
func (t *Table) Remove(key string) {
	entry, ok := t.entries[key]
	if !ok {
		return
	}
	t.bucket.bytes -= int64(entry.bytes)
	delete(t.entries, key)
	if t.times != nil && entry.Time != nil {
		t.times.Drop(entry.Time)
	}
}

// Resize notes the serialized size of an entry's state, which the log has, and the bytes it takes in memory besides that.
func (t *Table) Resize(entry *Entry, serialized, overhead int) {
	size := entryBytes + len(entry.Key) + liveFactor*serialized + overhead
	entry.saved = true
	t.bucket.bytes += int64(size - entry.bytes)
	entry.bytes = size
}

// Touch notes that an entry's state is to be persisted.
func (t *Table) Touch(entry *Entry) {
	if !entry.dirty {
		entry.dirty = true
		t.dirty = append(t.dirty, entry)
	}
}

// Changes calls visit for each entry to be persisted, in the order of their first change, or with all for every
// entry that was ever persisted. Then nothing is left to be persisted.
func (t *Table) Changes(all bool, visit func(*Entry) error) error {
	changed := t.dirty
	t.dirty = nil
	if all {
		changed = changed[:0:0]
		for _, entry := range t.entries {
			if entry.IsKept() {
				changed = append(changed, entry)
			}
		}
	}
	for _, entry := range changed {
		entry.dirty = false
		if t.entries[entry.Key] != entry {
			continue
		}
		if err := visit(entry); err != nil {
			return err
		}
		delete(t.dropped, entry.Key)
	}
	return nil
}

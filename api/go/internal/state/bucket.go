package state

import (
	"iter"
	"maps"

	"wallarooapi/internal/calendar"
	"wallarooapi/internal/timing"
)

const (
	// entryBytes is the estimated memory of a key without its state.
	entryBytes = 128
	// liveFactor is the estimated ratio of a state's memory to its serialized size. The real ratio is three to five for
	// maps and texts, and hardly more than one for a single long text.
	liveFactor = 3
)

// Bucket holds the states of all keys of one bucket as live objects. Only one call at a time uses it.
type Bucket struct {
	Version Version
	tables  map[uint16]*Table // by the port of the state in state logs
	bytes   int64
}

// NewBucket returns a bucket without states.
func NewBucket() *Bucket { return &Bucket{tables: map[uint16]*Table{}} }

// Bytes returns the estimated memory of the bucket in bytes.
func (b *Bucket) Bytes() int64 { return b.bytes }

// Keys returns the number of keys with state. A key with several states counts once for each.
func (b *Bucket) Keys() int {
	keys := 0
	for _, table := range b.tables {
		keys += len(table.entries)
	}
	return keys
}

// Table returns the states of one name in the bucket. port is the number that stands for this name in state logs.
func (b *Bucket) Table(port uint16) *Table {
	table, ok := b.tables[port]
	if !ok {
		table = &Table{Port: port, bucket: b, entries: map[string]*Entry{}}
		b.tables[port] = table
	}
	return table
}

// Tables yields the tables of the bucket.
func (b *Bucket) Tables() iter.Seq[*Table] { return maps.Values(b.tables) }

// Table holds the states of one name in one bucket, and notes which of them must be written to the state log.
type Table struct {
	Port     uint16
	Calendar any                                 // for a window step, its *calendar.Calendar
	times    *calendar.Calendar[*timing.KeyTime] // for a state with timers or a TTL; nil before the first call of Times
	bucket   *Bucket
	entries  map[string]*Entry
	dirty    []*Entry
	dropped  map[string]bool // keys whose states are still in the log and must be removed there
}

// Entry is the state of one key in a Table.
type Entry struct {
	Key   string
	Value any
	Time  *timing.KeyTime // nil if the key has no time
	// Logged is the serialized size of the state in the log, or 0 if the log has no state of the key.
	Logged int
	bytes  int // estimated memory
	dirty  bool
	saved  bool // the log contains a state of the key
}

// IsKept reports whether the log contains a state of the key, or will contain one after this call.
func (e *Entry) IsKept() bool { return e.saved || e.dirty }

// Get returns the entry of a key, or nil if the key has no state.
func (t *Table) Get(key []byte) *Entry { return t.entries[string(key)] }

// Add adds the state of a key. The key must not have a state.
func (t *Table) Add(key []byte, value any) *Entry {
	entry := &Entry{Key: string(key), Value: value, bytes: entryBytes + len(key)}
	t.entries[entry.Key] = entry
	t.bucket.bytes += int64(entry.bytes)
	return entry
}

// Times returns the calendar that finds the keys whose timers fire, or whose states end, at a tick. The first call
// makes the calendar, and gives a time to each key that has none.
func (t *Table) Times(rules *timing.StateRules) *calendar.Calendar[*timing.KeyTime] {
	if t.times == nil {
		for _, entry := range t.entries {
			if entry.Time == nil {
				entry.Time = rules.New(entry.Key)
			}
		}
		t.times = rules.Calendar(t.eachTime)
	}
	return t.times
}

// eachTime yields the KeyTime of each key that has one.
func (t *Table) eachTime(yield func(*timing.KeyTime) bool) {
	for _, entry := range t.entries {
		if entry.Time != nil && !yield(entry.Time) {
			return
		}
	}
}

// Drop removes the state of a key. If the log has this state, it must be removed there, too (see Dropped).
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

// Dropped yields the keys whose states must be removed from the log: those that Drop removed and that have no new
// state. Call Dropped after Changes. It forgets these keys.
func (t *Table) Dropped() iter.Seq[string] {
	dropped := t.dropped
	t.dropped = nil
	return maps.Keys(dropped)
}

// Entries yields the states of all keys, in no order.
func (t *Table) Entries() iter.Seq[*Entry] { return maps.Values(t.entries) }

// Remove removes the state of a key only from memory, and not from the log.
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

// Resize records that the state of an entry was written to the log. It estimates the entry's memory from the serialized
// size and the overhead, both in bytes.
func (t *Table) Resize(entry *Entry, serialized, overhead int) {
	size := entryBytes + len(entry.Key) + liveFactor*serialized + overhead
	entry.saved = true
	t.bucket.bytes += int64(size - entry.bytes)
	entry.bytes = size
}

// Touch marks the state of an entry as changed, so that Changes visits it.
func (t *Table) Touch(entry *Entry) {
	if !entry.dirty {
		entry.dirty = true
		t.dirty = append(t.dirty, entry)
	}
}

// Changes calls the function visit for each entry that must be written to the log, in the order of the first changes.
// If all is set, it calls visit for every entry that is in the log or must be. Afterwards no entry is marked as
// changed.
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

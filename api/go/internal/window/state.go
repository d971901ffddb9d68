package window

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"wallarooapi/internal/calendar"
)

// KeyState is the state of one key.
type KeyState struct {
	calendar.Slot
	Key         []byte
	low, high   int64 // a message from low to before high only updates current
	current     *pane
	first       int64   // time of the first message
	latest      int64   // the latest time of a message; of a count window that of its last
	oldest      int64   // number of the oldest open window; of a count window how many messages it has; see session
	silentSince int64   // when it fell silent
	panes       []*pane // by number
	hasLasts    bool    // panes are sessions
	hasBegun    bool    // a window with messages was emitted
	isLate      bool    // messages came after the last one in time, and all were late
	isSilent    bool    // a tick came after the last message in time, where that matters; where ticks move time, a late message
}

// pane holds the accumulator of the messages of one pane.
type pane struct {
	number      int64
	last        int64 // of a session: the time of its last message
	accumulator any
}

const (
	stateBytes = 200 // about what a state takes in memory, its place in the calendar included
	paneBytes  = 56
)

// NewState returns the state of a key without messages.
func NewState(key []byte) *KeyState { return &KeyState{Key: key} }

// SilentSince returns when the key fell silent.
func (s *KeyState) SilentSince() (time int64, is bool) { return s.silentSince, s.isSilent }

// FallSilent notes that a tick came after the last message.
func (s *KeyState) FallSilent(time int64) {
	s.isSilent, s.silentSince = true, time
	s.low, s.high = 0, 0
}

// Overhead returns about the number of bytes of memory that a state takes besides its key and its accumulators.
func (s *KeyState) Overhead() int { return stateBytes + paneBytes*len(s.panes) }

// Accumulators returns those of the panes, oldest first.
func (s *KeyState) Accumulators() []any {
	all := make([]any, len(s.panes))
	for i, p := range s.panes {
		all[i] = p.accumulator
	}
	return all
}

// reset makes it the state of a key without messages; the calendar keeps it.
func (s *KeyState) reset() {
	*s = KeyState{Slot: s.Slot, Key: s.Key}
}

// pane returns the pane of a number, a new one if need be.
func (s *KeyState) pane(number int64, initial func() any) *pane {
	at, ok := s.find(number)
	if !ok {
		s.panes = slices.Insert(s.panes, at, &pane{number: number, accumulator: initial()})
	}
	return s.panes[at]
}

// find returns where the pane of a number is, or belongs.
func (s *KeyState) find(number int64) (at int, ok bool) {
	return slices.BinarySearchFunc(s.panes, number, func(p *pane, number int64) int { return cmp.Compare(p.number, number) })
}

// between returns the panes from a number to before another one.
func (s *KeyState) between(begin, end int64) []*pane {
	from, _ := s.find(begin)
	to, _ := s.find(end)
	return s.panes[from:to]
}

// forget takes away the panes before a number.
func (s *KeyState) forget(before int64) {
	to, _ := s.find(before)
	s.panes = slices.Delete(s.panes, 0, to)
}

// Append appends the bytes of a state: first, latest and oldest as varints, a byte of flags, when it fell silent, then number and bytes of each
// accumulator, between them the time from first to last message of a session. write serializes an accumulator as states are.
func (s *KeyState) Append(out []byte, write func(out []byte, value any) ([]byte, error)) ([]byte, error) {
	start := len(out)
	out = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(out, s.first), s.latest), s.oldest)
	flags := byte(0)
	if s.hasBegun {
		flags |= 1
	}
	if s.isSilent {
		flags |= 2
	}
	if s.isLate {
		flags |= 4
	}
	if s.hasLasts {
		flags |= 8
	}
	out = binary.AppendVarint(append(out, flags), s.silentSince)
	for _, p := range s.panes {
		accumulator, err := write(nil, p.accumulator)
		if err != nil {
			return out[:start], err
		}
		out = binary.AppendVarint(out, p.number)
		if s.hasLasts {
			out = binary.AppendVarint(out, p.last-p.number)
		}
		out = binary.AppendUvarint(out, uint64(len(accumulator)))
		out = append(out, accumulator...)
	}
	return out, nil
}

var errCut = errors.New("the state of a window is cut")

// Read reads the bytes that Append wrote.
func Read(key, data []byte, read func(data []byte) (any, error)) (*KeyState, error) {
	s := NewState(key)
	r := reader{data: data}
	s.first, s.latest, s.oldest = r.varint(), r.varint(), r.varint()
	flags := r.take(1)
	if r.isCut {
		return nil, errCut
	}
	s.hasBegun, s.isSilent, s.isLate, s.silentSince = flags[0]&1 != 0, flags[0]&2 != 0, flags[0]&4 != 0, r.varint()
	s.hasLasts = flags[0]&8 != 0
	for len(r.data) > 0 && !r.isCut {
		p := &pane{number: r.varint()}
		if s.hasLasts {
			p.last = p.number + r.varint()
		}
		size := r.uvarint()
		serialized := r.take(size)
		if r.isCut {
			break
		}
		accumulator, err := read(serialized)
		if err != nil {
			return nil, err
		}
		p.accumulator = accumulator
		s.panes = append(s.panes, p)
	}
	if r.isCut {
		return nil, errCut
	}
	return s, nil
}

// reader takes numbers from the front of bytes.
type reader struct {
	data  []byte
	isCut bool
}

func (r *reader) varint() int64 {
	value, size := binary.Varint(r.data)
	r.skip(size)
	return value
}

func (r *reader) uvarint() uint64 {
	value, size := binary.Uvarint(r.data)
	r.skip(size)
	return value
}

func (r *reader) skip(size int) {
	if size <= 0 {
		r.isCut = true
		return
	}
	r.data = r.data[size:]
}

func (r *reader) take(size uint64) []byte {
	if r.isCut || size > uint64(len(r.data)) {
		r.isCut = true
		return nil
	}
	taken := r.data[:size:size]
	r.data = r.data[size:]
	return taken
}

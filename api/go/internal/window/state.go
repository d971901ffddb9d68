package window

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"wallarooapi/internal/calendar"
)

// KeyState holds the open windows of one key, with the accumulators of their messages.
type KeyState struct {
	calendar.Slot
	Key         []byte
	low, high   int64 // a message with low <= time < high changes only current
	current     *pane
	first       int64   // time of the first message
	latest      int64   // latest time of a message; for a count window, time of the last message
	oldest      int64   // for a range window, number of the oldest open window; for others, see count and session
	silentSince int64   // time at which the key fell silent
	panes       []*pane // by number
	hasLasts    bool    // panes are sessions
	hasBegun    bool    // a window with messages was emitted
	isLate      bool    // messages arrived after the one with the latest time, and all were late
	isSilent    bool    // silentSince is set: by a tick after the last message, or by a late message
}

// pane is a section of time, with the accumulator of the messages in it. A range window consists of one or more panes.
// A session is one pane, and so is a count window.
type pane struct {
	number      int64 // position in time; see span and session
	last        int64 // for a session, the time of its last message
	accumulator any
}

const (
	stateBytes = 200 // approximate memory of a state, including its position in the calendar
	paneBytes  = 56
)

// NewState returns the state of a key without messages.
func NewState(key []byte) *KeyState { return &KeyState{Key: key} }

// SilentSince returns the time at which the key fell silent. The second result is false if the key is not silent.
func (s *KeyState) SilentSince() (time int64, is bool) { return s.silentSince, s.isSilent }

// FallSilent marks the key as silent since a time, because the tick at this time has followed its last message.
func (s *KeyState) FallSilent(time int64) {
	s.isSilent, s.silentSince = true, time
	s.low, s.high = 0, 0
}

// Overhead returns the approximate memory of a state in bytes, without its key and accumulators.
func (s *KeyState) Overhead() int { return stateBytes + paneBytes*len(s.panes) }

// Accumulators returns the accumulators of the panes, oldest first.
func (s *KeyState) Accumulators() []any {
	all := make([]any, len(s.panes))
	for i, p := range s.panes {
		all[i] = p.accumulator
	}
	return all
}

// reset removes all messages from the state. The state keeps its position in the calendar.
func (s *KeyState) reset() {
	*s = KeyState{Slot: s.Slot, Key: s.Key}
}

// pane returns the pane with a number, and creates it if necessary.
func (s *KeyState) pane(number int64, initial func() any) *pane {
	at, ok := s.find(number)
	if !ok {
		s.panes = slices.Insert(s.panes, at, &pane{number: number, accumulator: initial()})
	}
	return s.panes[at]
}

// find returns the index of the pane with a number, or the index at which to insert this pane.
func (s *KeyState) find(number int64) (at int, ok bool) {
	return slices.BinarySearchFunc(s.panes, number, func(p *pane, number int64) int { return cmp.Compare(p.number, number) })
}

// between returns the panes whose numbers are at least begin and less than end.
func (s *KeyState) between(begin, end int64) []*pane {
	from, _ := s.find(begin)
	to, _ := s.find(end)
	return s.panes[from:to]
}

// forget removes the panes with numbers less than before.
func (s *KeyState) forget(before int64) {
	to, _ := s.find(before)
	s.panes = slices.Delete(s.panes, 0, to)
}

// Append appends the serialized state: first, latest and oldest as varints, a byte of flags, silentSince, and the
// panes. A pane has its number, for a session the time from its first to its last message, and its accumulator. write
// serializes accumulators.
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

// Read reads bytes that Append wrote. read deserializes an accumulator.
func Read(key, data []byte, read func(data []byte) (any, error)) (*KeyState, error) {
	s := NewState(key)
	data, ok := varints(data, &s.first, &s.latest, &s.oldest)
	if !ok || len(data) == 0 {
		return nil, errCut
	}
	flags := data[0]
	s.hasBegun, s.isSilent, s.isLate, s.hasLasts = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	for data, ok = varints(data[1:], &s.silentSince); ok && len(data) > 0; {
		p := &pane{}
		data, ok = varints(data, &p.number)
		if s.hasLasts && ok {
			data, ok = varints(data, &p.last)
			p.last += p.number
		}
		length, size := binary.Uvarint(data)
		if !ok || size <= 0 || length > uint64(len(data)-size) {
			return nil, errCut
		}
		end := size + int(length)
		accumulator, err := read(data[size:end:end])
		if err != nil {
			return nil, err
		}
		p.accumulator = accumulator
		s.panes, data = append(s.panes, p), data[end:]
	}
	if !ok {
		return nil, errCut
	}
	return s, nil
}

// varints reads numbers from the start of data, and returns the bytes after them. ok is false if data is cut.
func varints(data []byte, numbers ...*int64) (rest []byte, ok bool) {
	for _, number := range numbers {
		value, size := binary.Varint(data)
		if size <= 0 {
			return nil, false
		}
		*number, data = value, data[size:]
	}
	return data, true
}

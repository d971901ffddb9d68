// Package timing determines when the TTL of a state ends and when the timers of a key fire. SPECIFICATION.md, section
// 8, defines the behaviour.
package timing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"wallarooapi/internal/calendar"
)

// None stands for a missing time. asleep stands for the time of a key whose TTL does not run, because its state has at
// present no part that the TTL ends (see declaration.Expiring).
const None, asleep = math.MinInt64, math.MinInt64 + 1

// KeyTime decides when the state of one key ends and its timers fire: it has the time of the key's last message, and
// the timers that are set.
type KeyTime struct {
	calendar.Slot
	Key    string
	time   int64       // latest time of a message
	silent int64       // time of the first tick after the last message, if ticks indicate silence
	Timers []*SetTimer // sorted by name
	rules  *StateRules
}

// SetTimer is a timer of a key that will fire.
type SetTimer struct {
	Name string
	Due  int64 // in milliseconds since 1970
}

// StateRules say how long a state lives, and how messages and ticks advance the time of its keys.
type StateRules struct {
	TTL     int64 // in milliseconds; 0 if states never end
	IsEvent bool  // times are event times
	Waits   bool  // a tick has no event time, and only shows that a key is silent; otherwise ticks advance time
}

// byName orders timers by their names. compare orders them by their times, and timers of one time by their names.
func byName(a, b *SetTimer) int  { return strings.Compare(a.Name, b.Name) }
func compare(a, b *SetTimer) int { return cmp.Or(cmp.Compare(a.Due, b.Due), byName(a, b)) }

// New makes the time of a key that has no message yet.
func (r *StateRules) New(key string) *KeyTime {
	return &KeyTime{Key: key, time: None, silent: None, rules: r}
}

// Calendar makes the calendar of a bucket, which finds the keys whose timers fire, or whose states end, at a tick.
func (r *StateRules) Calendar(times iter.Seq[*KeyTime]) *calendar.Calendar[*KeyTime] {
	byKey := func(a, b *KeyTime) int { return strings.Compare(a.Key, b.Key) }
	return calendar.New(calendar.Rules[*KeyTime]{Due: (*KeyTime).next, Waits: r.Waits, Compare: byKey}, times)
}

// Overhead returns the approximate memory in bytes that the time and timers of the key need.
func (s *KeyTime) Overhead() int { return 120 + 80*len(s.Timers) }

// SilentSince returns the time of the first tick after the last message. The second result is false if no tick
// followed.
func (s *KeyTime) SilentSince() (time int64, is bool) { return s.silent, s.silent != None }

// FallSilent records the time of the first tick after the last message. If the log has no time for the key, because the
// step had neither TTL nor timers when the log was written, the tick's time becomes the time of the key.
func (s *KeyTime) FallSilent(time int64) {
	if s.time == None {
		s.time = time
	}
	if s.rules.Waits {
		s.silent = time
	}
}

// next returns the time of the first tick at which a timer fires or the state ends. known is false if this time depends
// on a tick that has not come yet.
func (s *KeyTime) next() (time int64, known bool) {
	if s.time == None {
		return 0, false
	}
	next := int64(calendar.Never)
	for _, timer := range s.Timers {
		next = min(next, timer.Due)
	}
	if s.rules.TTL > 0 && s.time > asleep {
		next = min(next, s.End())
	}
	if !s.rules.Waits || next == calendar.Never {
		return next, true
	}
	return s.silent + next - s.time, s.silent != None
}

// At returns the time of the key at a tick. This is the time of the tick, if ticks advance time. Otherwise it is the
// time of the key's last message plus the duration of the silence.
func (s *KeyTime) At(tick int64) int64 {
	if s.rules.Waits {
		return s.time + tick - s.silent
	}
	return tick
}

// Arrive records that a message of the key has arrived.
func (s *KeyTime) Arrive(time int64) { s.time, s.silent = max(s.time, time), None }

// Sleep stops the TTL until the key's next message, because the state has no part that the TTL ends.
func (s *KeyTime) Sleep() { s.time, s.silent = asleep, None }

// End returns the time at which the TTL ends the state.
func (s *KeyTime) End() int64 { return s.time + s.rules.TTL }

// mostTimers limits how many timers fire in one call of Wake, because timers may set other timers that are already due.
const mostTimers = 10_000

// Wake removes and yields the timers that are due at the time `at`, the earliest first, and finally nil if the TTL ends
// the state. This includes due timers that the caller sets meanwhile. If `at` is the end of the data, which is later
// than all times, each timer fires at most once.
func (s *KeyTime) Wake(at int64) iter.Seq[*SetTimer] {
	return func(yield func(*SetTimer) bool) {
		isEnd, ran := s.rules.IsEvent && !s.rules.Waits && at > calendar.LastMs, map[string]bool{}
		ends := s.rules.TTL > 0 && s.time > asleep && s.End() <= at
		if ends {
			at = s.End() // later timers do not fire
		}
		last := (*SetTimer)(nil)
		waits := func(t *SetTimer) bool {
			return t.Due > at || isEnd && ran[t.Name] || !isEnd && last != nil && compare(t, last) <= 0
		}
		for range mostTimers {
			due := slices.DeleteFunc(slices.Clone(s.Timers), waits)
			if len(due) == 0 {
				if isEnd {
					s.Timers = nil
				}
				if ends {
					yield(nil)
				}
				return
			}
			last = slices.MinFunc(due, compare)
			ran[last.Name] = true
			s.Timers = slices.DeleteFunc(s.Timers, func(t *SetTimer) bool { return t == last })
			if !yield(last) {
				return
			}
		}
	}
}

// Apply applies the timer changes of one call.
func (s *KeyTime) Apply(call *Changes) {
	for _, timer := range call.end() {
		s.Timers = slices.DeleteFunc(s.Timers, func(t *SetTimer) bool { return t.Name == timer.Name })
		if timer.Due != None {
			s.Timers = append(s.Timers, timer)
		}
	}
	slices.SortFunc(s.Timers, byName)
}

// Append writes the prefix of a state in the state log: the encoding of the state, the time of its key, the start of
// the silence, and the timers. s is nil for a key that has no time.
func (s *KeyTime) Append(out []byte, encoding byte) []byte {
	time, silent, timers := int64(None), int64(None), []*SetTimer(nil)
	if s != nil {
		time, silent, timers = s.time, s.silent, s.Timers
	}
	out = binary.LittleEndian.AppendUint64(append(out, encoding), uint64(time))
	out = binary.LittleEndian.AppendUint64(out, uint64(silent))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(timers)))
	for _, timer := range timers {
		out = append(binary.LittleEndian.AppendUint16(out, uint16(len(timer.Name))), timer.Name...)
		out = binary.LittleEndian.AppendUint64(out, uint64(timer.Due))
	}
	return out
}

var errCut = errors.New("the time of a state is cut")

const headerBytes = 1 + 8 + 8 + 2

// Read reads the prefix that Append wrote. It also returns the encoding and the bytes of the state.
func (r *StateRules) Read(key string, data []byte) (s *KeyTime, encoding byte, body []byte, err error) {
	if len(data) < headerBytes {
		return nil, 0, nil, errCut
	}
	s, encoding = r.New(key), data[0]
	s.time, s.silent = int64(binary.LittleEndian.Uint64(data[1:])), int64(binary.LittleEndian.Uint64(data[9:]))
	count, data := int(binary.LittleEndian.Uint16(data[17:])), data[headerBytes:]
	for range count {
		if len(data) < 2 {
			return nil, 0, nil, errCut
		}
		size := int(binary.LittleEndian.Uint16(data))
		if len(data) < 2+size+8 {
			return nil, 0, nil, errCut
		}
		s.Timers = append(s.Timers, &SetTimer{string(data[2 : 2+size]), int64(binary.LittleEndian.Uint64(data[2+size:]))})
		data = data[2+size+8:]
	}
	if !r.Waits {
		s.silent = None
	}
	return s, encoding, data, nil
}

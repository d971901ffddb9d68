// Package piece splits large states in state logs into pieces and joins them again. The header "piece" of a value
// contains the number of the piece and the count of pieces. SPECIFICATION.md, section 4, describes the layout.
package piece

import (
	"encoding/binary"
	"errors"
	"fmt"

	"wallarooapi/internal/frame"
)

// Bytes is the maximum size of a piece, and of a state that is not split.
const Bytes = 4 << 20

const (
	name        = "piece"
	numberBytes = 8 // number and count
	headerBytes = 2 + len(name) + 4 + numberBytes
)

// Write returns the log entries of one state, split into pieces of at most size bytes.
func Write(port uint16, encoding byte, key, value []byte, size int) (entries [][]byte, err error) {
	count := (len(value) + size - 1) / size
	for number := range count {
		b := frame.Builder{Port: port, Encoding: encoding}
		b.UseKey(b.AddKey(key))
		at := binary.LittleEndian.AppendUint32(nil, uint32(number))
		b.UseHeader(name, binary.LittleEndian.AppendUint32(at, uint32(count)))
		b.Add(value[number*size : min(len(value), (number+1)*size)])
		entry, err := b.Frame()
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Joiner joins the pieces of states that are read from a state log. The pieces of a state must follow each other in
// order. The zero value is ready to use.
type Joiner struct {
	data  []byte
	next  uint32
	first [3]string // port and encoding, key, and count of pieces: the same for all pieces of a state
}

// Is reports whether an entry of a state log is a piece of a state, and not a list of whole states.
func Is(f *frame.Frame) bool { return f.Flags&frame.FlagHeaders != 0 }

// Take adds a piece. It returns the whole state after the last piece, and nil before.
func (j *Joiner) Take(f *frame.Frame) (state []byte, err error) {
	number, count, err := numbers(f)
	if err != nil {
		return nil, err
	}
	first := [3]string{fmt.Sprint(f.Port, f.Encoding), string(f.Keys[0]), fmt.Sprint(count)}
	if number != j.next || number > 0 && first != j.first {
		return nil, fmt.Errorf("piece %d of %d of a state comes after %d pieces", number, count, j.next)
	}
	j.data, j.next, j.first = append(j.data, f.Values...), number+1, first
	if j.next < count {
		return nil, nil
	}
	state = j.data
	*j = Joiner{}
	return state, nil
}

// End must be called after the last piece. It returns an error if pieces of a state are missing.
func (j *Joiner) End() error {
	if j.next > 0 {
		return fmt.Errorf("a state of %s pieces ends after %d", j.first[2], j.next)
	}
	return nil
}

// numbers reads the number of a piece, and the count of pieces of its state.
func numbers(f *frame.Frame) (number, count uint32, err error) {
	if f.Count == 1 && len(f.Keys) == 1 && !f.HasAbsent() && len(f.Headers[0]) == headerBytes {
		h := f.Headers[0]
		number, count = binary.LittleEndian.Uint32(h[headerBytes-8:]), binary.LittleEndian.Uint32(h[headerBytes-4:])
		isPiece := binary.LittleEndian.Uint16(h) == uint16(len(name)) && string(h[2:2+len(name)]) == name &&
			binary.LittleEndian.Uint32(h[2+len(name):]) == numberBytes
		if isPiece && number < count && count > 1 {
			return number, count, nil
		}
	}
	return 0, 0, errors.New("an entry of a state log has headers that are not those of a piece")
}

// Package flight notes which message is in flight where the runtime finds it after this process is gone.
package flight

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// Bytes is the size of the words at the file's beginning: index of the call, 1 + ordinal of the message, process id, keys visited.
const Bytes = 32

// NoteBytes is the size of the text after the words, where the file has it.
const NoteBytes = 224

// outside is in place of a message: states are read or written.
const outside = 1 << 62

// Region is the memory that holds the message in flight. It is used by one goroutine at a time.
type Region struct {
	memory []byte
	words  *[Bytes / 8]uint64
}

// Open maps the file that a stream's opening names; with no name the record is seen by nobody.
func Open(path string) (*Region, error) {
	if path == "" {
		return &Region{words: &[Bytes / 8]uint64{}}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// A store after the file's end would end this process.
	if info.Size() < Bytes {
		return nil, fmt.Errorf("%s has %d bytes; expected %d", path, info.Size(), Bytes)
	}
	size := Bytes
	if info.Size() >= Bytes+NoteBytes {
		size += NoteBytes
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &Region{memory: memory, words: (*[Bytes / 8]uint64)(unsafe.Pointer(&memory[0]))}
	r.words[2] = uint64(os.Getpid())
	return r, nil
}

// Begin notes the call whose messages come next.
func (r *Region) Begin(index uint64) { r.words[1], r.words[0] = 0, index }

// At notes the message of the call that enters user code. The store is a plain one: nobody reads it in step with us,
// and the call of user code after it keeps it from being moved or left out.
func (r *Region) At(ordinal uint64) { r.words[1] = ordinal + 1 }

// Advance notes that a visit, the message at hand, has come to its next key.
func (r *Region) Advance() { r.words[3]++ }

// Outside notes that user code runs for no message: states are read or written.
func (r *Region) Outside() { r.words[1] = outside }

// Note records work for no message; it costs more than the rest.
func (r *Region) Note(text string) {
	if len(r.memory) > Bytes {
		note := r.memory[Bytes:]
		clear(note[copy(note, text):])
	}
}

// Rest notes that no message is in flight, and returns the argument of Resume.
func (r *Region) Rest() (at uint64) {
	at, r.words[1] = r.words[1], 0
	return at
}

// Resume undoes Rest.
func (r *Region) Resume(at uint64) { r.words[1] = at }

// Close ends the mapping.
func (r *Region) Close() error {
	if r.memory == nil {
		return nil
	}
	memory := r.memory
	r.memory, r.words = nil, &[Bytes / 8]uint64{}
	return syscall.Munmap(memory)
}

// Package flight records in a file which message user code is processing (the message in flight). If the process ends
// or hangs, the runtime reads from the file which message is at fault.
package flight

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// Bytes is the size of the four words at the start of the file: the index of the call, 1 + the number of the message in
// the call, the process id, and the count of keys that visits and ticks have reached.
const Bytes = 32

// NoteBytes is the size of the text after the words, see Note. A file may lack the text.
const NoteBytes = 224

// outside takes the place of the message's number while user code reads or writes states.
const outside = 1 << 62

// File says which message of one stream of calls is in flight. It is a file that is mapped into memory. It is not safe
// for concurrent use.
type File struct {
	memory []byte
	words  *[Bytes / 8]uint64
}

// Open maps the file at path into memory. If path is empty, the record is only in this process.
func Open(path string) (*File, error) {
	if path == "" {
		return &File{words: &[Bytes / 8]uint64{}}, nil
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
	// Access beyond the end of the file would kill this process.
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
	r := &File{memory: memory, words: (*[Bytes / 8]uint64)(unsafe.Pointer(&memory[0]))}
	r.words[2] = uint64(os.Getpid())
	return r, nil
}

// Begin records that the call with this index begins.
func (r *File) Begin(index uint64) { r.words[1], r.words[0] = 0, index }

// At records that the message with this number enters user code. A plain store is enough. The runtime does not read it
// concurrently, and the compiler cannot move or remove it, because a call of user code follows.
func (r *File) At(ordinal uint64) { r.words[1] = ordinal + 1 }

// Advance records that a visit or tick has reached its next key, or that a timer runs. The runtime thus sees that a
// long visit makes progress.
func (r *File) Advance() { r.words[3]++ }

// Outside records that code of the program runs to read or write states, and not for a message.
func (r *File) Outside() { r.words[1] = outside }

// Note records a text about the work that follows, for an error message if this work ends the process. It is for work
// without a message in flight, and costs more than the other methods.
func (r *File) Note(text string) {
	if len(r.memory) > Bytes {
		note := r.memory[Bytes:]
		clear(note[copy(note, text):])
	}
}

// Rest records that no message is in flight. It returns the argument for Resume.
func (r *File) Rest() (at uint64) {
	at, r.words[1] = r.words[1], 0
	return at
}

// Resume restores the record from before Rest.
func (r *File) Resume(at uint64) { r.words[1] = at }

// Close unmaps the file.
func (r *File) Close() error {
	if r.memory == nil {
		return nil
	}
	memory := r.memory
	r.memory, r.words = nil, &[Bytes / 8]uint64{}
	return syscall.Munmap(memory)
}

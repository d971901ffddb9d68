package goka

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/proto"

	"wallarooapi/internal/recordpb"
)

// topicsVariable is the name of an environment variable: the directory with the topics of the runtime's in-memory
// engine. The variable is empty if topics are in Kafka.
const topicsVariable = "WALLAROO_TOPICS"

// lookupTable is a worker's complete copy of the table of a Lookup edge: a view of Kafka, or a memoryTable.
type lookupTable interface {
	Get(key string) (any, error)
}

// memoryTable is the table of a Lookup edge in a run with the in-memory engine, which has no Kafka. There a topic is a
// file that the engine appends to.
type memoryTable struct {
	path  string
	codec Codec

	mutex  sync.Mutex
	offset int64 // position in the file up to which values has been updated
	values map[string][]byte
}

func newMemoryTable(directory, topic string, codec Codec) *memoryTable {
	name := sha256.Sum256([]byte(topic))
	return &memoryTable{path: filepath.Join(directory, hex.EncodeToString(name[:])), codec: codec, values: map[string][]byte{}}
}

// declare creates the topic's file if necessary. The file shows the in-memory engine that the group looks the topic up.
func (t *memoryTable) declare() error {
	file, err := os.OpenFile(t.path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the table in memory: %w", err)
	}
	return file.Close()
}

// Get returns the latest value of a key, or nil if the key has none.
func (t *memoryTable) Get(key string) (any, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err := t.catchUp(); err != nil {
		return nil, fmt.Errorf("the table in memory: %w", err)
	}
	data, has := t.values[key]
	if !has {
		return nil, nil
	}
	return t.codec.Decode(data)
}

// catchUp reads the records that were written to the file since the last call, and applies them to the field values. It
// does nothing if there is no file.
func (t *memoryTable) catchUp() error {
	file, err := os.Open(t.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	for len(data) > 0 {
		size := 4
		if len(data) >= size {
			size += int(binary.BigEndian.Uint32(data))
		}
		if len(data) < size {
			return io.ErrUnexpectedEOF
		}
		var record recordpb.Record
		if err := proto.Unmarshal(data[4:size], &record); err != nil {
			return err
		}
		if record.Value == nil {
			delete(t.values, string(record.Key))
		} else {
			t.values[string(record.Key)] = record.Value
		}
		data, t.offset = data[size:], t.offset+int64(size)
	}
	return nil
}

package goka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"wallarooapi/goka/codec"
	"wallarooapi/internal/recordpb"
)

// TestATableInMemoryIsFollowed draws records with and without a value, and reads keys between them. The reference is a
// map.
func TestATableInMemoryIsFollowed(t *testing.T) {
	table, wanted := newMemoryTable(t.TempDir(), "rates", new(codec.Int64)), map[string]int64{}
	draw := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		key, number := names[draw.IntN(len(names))], draw.Int64N(100)
		record := &recordpb.Record{Key: []byte(key)}
		delete(wanted, key)
		if number > 30 {
			record.Value, wanted[key] = fmt.Append(nil, number), number
		}
		write(t, table.path, record, 0)
		for range draw.IntN(3) {
			asked := names[draw.IntN(len(names))]
			value, err := table.Get(asked)
			if number, has := wanted[asked]; err != nil || has != (value != nil) || has && value != number {
				t.Fatalf("%q: %v, %v instead of %v", asked, value, err, number)
			}
		}
	}
}

func TestATableInMemoryThatIsCut(t *testing.T) {
	for cut := 1; cut < 8; cut++ {
		table := newMemoryTable(t.TempDir(), "rates", new(codec.Int64))
		if value, err := table.Get("k"); value != nil || err != nil {
			t.Errorf("a topic without records: %v, %v", value, err)
		}
		write(t, table.path, &recordpb.Record{Key: []byte("k"), Value: []byte("1")}, cut)
		if _, err := table.Get("k"); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes less: %v", cut, err)
		}
	}
}

// write appends a record to the file of a topic, without its last bytes.
func write(t *testing.T, path string, record *recordpb.Record, cut int) {
	t.Helper()
	data, err := proto.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	if _, err := file.Write(framed[:len(framed)-cut]); err != nil {
		t.Fatal(err)
	}
}

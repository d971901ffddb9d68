// A list per key that each message `KEY BYTES` makes longer by so many random bytes, after a look at those it has.
package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand"

	app "wallarooapi/application"
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

func setup(args []string) *app.Application {
	a := app.MakeApplication("Large")
	a.NewPipeline("large", app.MakeTCPSourceConfig("127.0.0.1", "0", &Decoder{})).
		ToStatePartition(&Grow{}, &PileBuilder{}, "pile", &Key{}).
		ToSink(app.MakeTCPSinkConfig("127.0.0.1", "1", &Encoder{}))
	return a
}

// Pile is the state of one key.
type Pile struct {
	Parts     [][]byte
	Checksums []uint32
}

type PileBuilder struct{}

func (*PileBuilder) Build() interface{} { return &Pile{} }

type Decoder struct{}

func (*Decoder) HeaderLength() uint64 { return 4 }

func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (*Decoder) Decode(b []byte) interface{} { return string(b) }

type Key struct{}

func (*Key) Partition(data interface{}) []byte { return []byte(data.(string)[:1]) }

type Grow struct{}

func (*Grow) Name() string { return "grow" }

func (*Grow) Compute(data interface{}, state interface{}) (interface{}, bool) {
	var key string
	var size, total int
	if _, err := fmt.Sscan(data.(string), &key, &size); err != nil {
		panic(err)
	}
	pile := state.(*Pile)
	for at, part := range pile.Parts {
		if crc32.ChecksumIEEE(part) != pile.Checksums[at] {
			panic("a part is not what it was")
		}
		total += len(part)
	}
	part := make([]byte, size)
	rand.New(rand.NewSource(int64(len(pile.Parts)))).Read(part)
	pile.Parts, pile.Checksums = append(pile.Parts, part), append(pile.Checksums, crc32.ChecksumIEEE(part))
	total += size
	return fmt.Sprintf("%s %d", key, total), true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte { return []byte(data.(string) + "\n") }

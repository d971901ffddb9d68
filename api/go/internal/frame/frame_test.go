package frame_test

import (
	"bytes"
	"errors"
	"testing"

	"wallarooapi/internal/frame"
)

func TestFramesStandOneAfterTheOther(t *testing.T) {
	b := frame.Builder{Port: 3, Encoding: 16}
	var all []byte
	for round := range 2 {
		for i := range 300 {
			if i == 0 {
				b.AddKey([]byte("key"))
			}
			b.UseKey(0)
			b.UseSequence(uint64(1000*round + 70000*i))
			b.Add(bytes.Repeat([]byte{'x'}, i))
		}
		one, err := b.Frame()
		if err != nil {
			t.Fatal(err)
		}
		if len(one) > frame.HeaderBytes+b.BodyBytes() {
			t.Errorf("the body has %d bytes, more than BodyBytes says: %d", len(one)-frame.HeaderBytes, b.BodyBytes())
		}
		all = append(all, one...)
		b.Reset()
	}
	var f frame.Frame
	rest := all
	for round := range 2 {
		var err error
		if rest, err = f.Read(rest); err != nil {
			t.Fatal(err)
		}
		if got := f.SequenceOf(299); got != uint64(1000*round+70000*299) || f.Lengths.At(299) != 299 || f.Count != 300 {
			t.Errorf("frame %d: sequence %d, length %d", round, got, f.Lengths.At(299))
		}
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
}

func TestEveryChangedBitIsNoticed(t *testing.T) {
	b := frame.Builder{Port: 1}
	b.UseKey(b.AddKey([]byte("k")))
	b.Add([]byte("value"))
	whole, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(whole) * 8 {
		broken := bytes.Clone(whole)
		broken[i/8] ^= 1 << (i % 8)
		var f frame.Frame
		_, err := f.Read(broken)
		if known := frame.Error(""); !errors.As(err, &known) {
			t.Errorf("bit %d: error is %v", i, err)
		}
	}
}

func TestFramesThatAreTooLongAreRefused(t *testing.T) {
	b := frame.Builder{}
	b.Add(make([]byte, frame.MaxBodyBytes))
	if _, err := b.Frame(); err == nil {
		t.Error("was written")
	}
	if _, err := frame.WriteFramed(0, 0, 0, 1, make([]byte, frame.MaxBodyBytes+1)); err == nil {
		t.Error("was written")
	}
}

// FuzzRead puts any bytes after a valid header and checksum, so that the columns are reached.
func FuzzRead(f *testing.F) {
	f.Add(byte(0), byte(0), uint16(2), []byte{1, 1, 1, 'a', 'b'})
	f.Add(byte(31), byte(16), uint16(1), []byte{1, 0, 0, 0, 1, 1, 'k', 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 'v'})
	f.Add(byte(1), byte(0), uint16(9), []byte{0xFF, 0xFF, 0xFF, 0xFF, 8})
	f.Fuzz(func(t *testing.T, flags, encoding byte, count uint16, body []byte) {
		data := frame.Seal(flags, encoding, int(count), body)
		var read frame.Frame
		if _, err := read.Read(data); err != nil {
			return
		}
		left := len(read.Values)
		for i := range read.Count {
			read.SequenceOf(i)
			read.TimestampOf(i)
			if read.Flags&frame.FlagKeys != 0 {
				_ = read.Keys[read.KeyIndexes.At(i)]
			}
			if !read.IsAbsent(i) && read.Encoding != frame.Framed {
				left -= int(read.Lengths.At(i))
			}
		}
		if left < 0 {
			t.Errorf("values are longer than the body by %d", -left)
		}
		if _, err := read.Read(body); err == nil && len(body) < frame.HeaderBytes {
			t.Error("a header was read from too few bytes")
		}
	})
}

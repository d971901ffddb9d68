package frame_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"wallarooapi/internal/frame"
	"wallarooapi/internal/testdata/vector"
)

type frameCase struct {
	Name        string    `json:"name"`
	Hex         string    `json:"hex"`
	Port        uint16    `json:"port"`
	Encoding    byte      `json:"encoding"`
	Count       int       `json:"count"`
	Flags       byte      `json:"flags"`
	Sequence    uint64    `json:"sequence"`
	TimestampMs int64     `json:"timestamp_ms"`
	Narrow      bool      `json:"narrow"`
	Keys        []string  `json:"keys"`
	KeyIndexes  []uint64  `json:"key_indexes"`
	Sequences   []uint64  `json:"sequences"`
	Timestamps  []int64   `json:"timestamps"`
	Values      []*string `json:"values"`
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	bytes, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// check returns an error that describes how a frame differs from a test vector.
func check(c frameCase, data []byte) error {
	var f frame.Frame
	rest, err := f.Read(data)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("%d bytes are left; %w", len(rest), err)
	}
	if f.Port != c.Port || f.Encoding != c.Encoding || f.Count != c.Count || f.Flags != c.Flags || f.Sequence != c.Sequence || f.TimestampMs != c.TimestampMs {
		return fmt.Errorf("the header is %+v", f.Header)
	}
	values := f.Values
	for i := range c.Count {
		if len(c.Sequences) > 0 && f.SequenceOf(i) != c.Sequences[i] || len(c.Timestamps) > 0 && f.TimestampOf(i) != c.Timestamps[i] {
			return fmt.Errorf("message %d has sequence %d and timestamp %d", i, f.SequenceOf(i), f.TimestampOf(i))
		}
		if len(c.Keys) > 0 && (f.KeyIndexes.At(i) != c.KeyIndexes[i] || hex.EncodeToString(f.Keys[c.KeyIndexes[i]]) != c.Keys[c.KeyIndexes[i]]) {
			return fmt.Errorf("message %d has the key at %d of %q", i, f.KeyIndexes.At(i), f.Keys)
		}
		if f.IsAbsent(i) != (c.Values[i] == nil) {
			return fmt.Errorf("message %d: absent is %v", i, f.IsAbsent(i))
		}
		want := ""
		if c.Values[i] != nil {
			want = *c.Values[i]
		}
		length := len(want) / 2
		if c.Encoding != frame.Framed && f.Lengths.At(i) != uint64(length) || len(values) < length || hex.EncodeToString(values[:length]) != want {
			return fmt.Errorf("the value of message %d differs", i)
		}
		values = values[length:]
	}
	return nil
}

// build writes the frame that a test vector describes. ok is false if the frame has columns that Builder does not
// write.
func build(t *testing.T, c frameCase) (bytes []byte, ok bool) {
	t.Helper()
	var err error
	if c.Encoding == frame.Framed {
		values := []byte{}
		for _, value := range c.Values {
			values = append(values, unhex(t, *value)...)
		}
		bytes, err = frame.WriteFramed(c.Port, c.Sequence, c.TimestampMs, c.Count, values)
		return bytes, err == nil && c.Flags == 0
	}
	b := frame.Builder{Port: c.Port, Encoding: c.Encoding, TimestampMs: c.TimestampMs}
	for _, key := range c.Keys {
		b.AddKey(unhex(t, key))
	}
	for i, value := range c.Values {
		if len(c.Keys) > 0 {
			b.UseKey(uint32(c.KeyIndexes[i]))
		}
		if len(c.Sequences) > 0 {
			b.UseSequence(c.Sequences[i])
		}
		if value == nil {
			b.AddAbsent()
			continue
		}
		b.Add(unhex(t, *value))
	}
	bytes, err = b.Frame()
	canWrite := c.Flags&(frame.FlagTimestamps|frame.FlagHeaders) == 0 && (len(c.Sequences) > 0 || c.Sequence == 0)
	return bytes, err == nil && canWrite
}

func TestFrameVectors(t *testing.T) {
	var file struct {
		Valid   []frameCase `json:"valid"`
		Invalid []struct{ Name, Reason, Hex string }
	}
	vector.Read(t, "frames.json", &file)
	written := 0
	for _, c := range file.Valid {
		data := unhex(t, c.Hex)
		if err := check(c, data); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if again, ok := build(t, c); ok && c.Narrow {
			written++
			if !reflect.DeepEqual(again, data) {
				t.Errorf("%s: written as %x; want %x", c.Name, again, data)
			}
		}
	}
	if written < 5 {
		t.Errorf("only %d cases were written", written)
	}
	for _, c := range file.Invalid {
		var f frame.Frame
		if _, err := f.Read(unhex(t, c.Hex)); err == nil {
			t.Errorf("%s: was read", c.Name)
		}
	}
}

func TestWrongFrameVectorsFail(t *testing.T) {
	var file struct{ Frames []json.RawMessage }
	vector.Read(t, "selftest.json", &file)
	for _, raw := range file.Frames {
		var c frameCase
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if check(c, unhex(t, c.Hex)) == nil {
			t.Errorf("%s: passed", c.Name)
		}
	}
	if len(file.Frames) == 0 {
		t.Error("no cases")
	}
}

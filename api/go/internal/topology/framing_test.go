package topology

import (
	"encoding/binary"
	"testing"
)

func TestProbeFraming(t *testing.T) {
	for _, kind := range []string{"u8", "u16be", "u16le", "u32be", "u32le", "u64be", "u64le"} {
		width := map[byte]int{'8': 1, '1': 2, '3': 4, '6': 8}[kind[1]]
		framing := Framing{kind, width}
		if got := ProbeFraming(width, framing.Length); got != framing {
			t.Errorf("%s was taken for %v", kind, got)
		}
	}
	others := map[string]struct {
		width  int
		length func([]byte) uint64
	}{
		"three bytes":        {3, func(b []byte) uint64 { return uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2]) }},
		"length with header": {4, func(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) + 4 }},
		"one bit missing":    {2, func(b []byte) uint64 { return uint64(binary.BigEndian.Uint16(b)) &^ 0x8000 }},
		"always zero":        {4, func([]byte) uint64 { return 0 }},
		"panics for zero": {4, func(b []byte) uint64 {
			if b[0] == 0 {
				panic("too short")
			}
			return uint64(binary.BigEndian.Uint32(b))
		}},
	}
	for name, other := range others {
		if got := ProbeFraming(other.width, other.length); got != (Framing{WorkerFraming, other.width}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNameFault(t *testing.T) {
	for name, usable := range map[string]bool{
		"Word Count": true, "Grüße": true, "Gru\u0308ße": false, "": false, "a\nb": false, "a\u0085b": false, "\xff": false,
		string(make([]rune, 201)): false, "a\u2028b": true,
	} {
		if fault := NameFault(name); (fault == "") != usable {
			t.Errorf("%q: %q", name, fault)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		host, port string
		number     int
		usable     bool
	}{
		{"127.0.0.1", "7010", 7010, true}, {"::1", "0", 0, true}, {"localhost", "65535", 65535, true},
		{"", "1", 0, false}, {"h", "65536", 0, false}, {"h", "", 0, false}, {"h", "-1", 0, false}, {"a b", "1", 0, false},
	} {
		number, fault := Address(c.host, c.port)
		if number != c.number || (fault == "") != c.usable {
			t.Errorf("%s:%s gives %d, %q", c.host, c.port, number, fault)
		}
	}
}

package topology

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DeclaredKey is a key that the program has declared for a state, as programs of Wallaroo 0.4 do.
type DeclaredKey struct {
	Bytes   []byte
	Integer bool // the user gave a number
}

// IntegerKey returns the key for a number.
func IntegerKey(number uint64) DeclaredKey {
	return DeclaredKey{Bytes: binary.BigEndian.AppendUint64(nil, number), Integer: true}
}

// Tree returns the key in the form of the topology document.
func (k DeclaredKey) Tree() any {
	if k.Integer {
		return binary.BigEndian.Uint64(k.Bytes)
	}
	if text := string(k.Bytes); isText(text) {
		return text
	}
	return Object{{"base64", base64.StdEncoding.EncodeToString(k.Bytes)}}
}

// isText reports whether a key is written as a string: valid UTF-8 without control characters.
func isText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, isControl)
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7F && r <= 0x9F }

// Bucket returns the number of the bucket of a key. count is the number of buckets, at least 1.
func Bucket(key []byte, count uint32) uint32 {
	hash := crc32.ChecksumIEEE(key) * 0x9E3779B1
	return uint32(uint64(hash) * uint64(count) >> 32)
}

// ShowKey returns a key for an error message: quoted, or as a number.
func ShowKey(key []byte) string {
	if len(key) == 8 && !isText(string(key)) { // a number, as in programs of Wallaroo 0.4
		return strconv.FormatUint(binary.BigEndian.Uint64(key), 10)
	}
	return strconv.Quote(string(key))
}

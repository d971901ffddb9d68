package topology

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"

	"wallarooapi/internal/testdata/vector"
)

// ordered reads JSON as Object, Array and simple values, with the keys in their order.
func ordered(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return orderedValue(t, decoder)
}

func token(t *testing.T, decoder *json.Decoder) json.Token {
	t.Helper()
	next, err := decoder.Token()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func orderedValue(t *testing.T, decoder *json.Decoder) any {
	t.Helper()
	switch next := token(t, decoder).(type) {
	case json.Delim:
		if next == '[' {
			array := Array{}
			for decoder.More() {
				array = append(array, orderedValue(t, decoder))
			}
			token(t, decoder)
			return array
		}
		object := Object{}
		for decoder.More() {
			key := token(t, decoder).(string)
			object = append(object, Member{key, orderedValue(t, decoder)})
		}
		token(t, decoder)
		return object
	case json.Number:
		if small, err := strconv.Atoi(next.String()); err == nil {
			return small
		}
		number, err := strconv.ParseUint(next.String(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return number
	case string, bool:
		return next
	}
	t.Fatal("null does not occur")
	return nil
}

type textCase struct {
	Name      string
	Value     json.RawMessage
	Canonical string
}

func writeText(t *testing.T, c textCase) string {
	t.Helper()
	written := Canonical(ordered(t, c.Value))
	if strings.HasSuffix(c.Canonical, "\n") {
		return string(written)
	}
	return strings.TrimSuffix(string(written), "\n") // a case of a value inside a document
}

func TestCanonicalVectors(t *testing.T) {
	var file struct{ Strings, Documents []textCase }
	vector.Read(t, "canonical.json", &file)
	for _, c := range append(file.Strings, file.Documents...) {
		if got := writeText(t, c); got != c.Canonical {
			t.Errorf("%s: %q; want %q", c.Name, got, c.Canonical)
		}
	}
}

type keyCase struct {
	Declared struct {
		Text    *string
		Bytes   *string
		Integer *uint64
	}
	Hex      string
	Document json.RawMessage
	Crc32    uint32
	Buckets  map[string]uint32
}

func (c keyCase) key(t *testing.T) DeclaredKey {
	t.Helper()
	switch {
	case c.Declared.Integer != nil:
		return IntegerKey(*c.Declared.Integer)
	case c.Declared.Text != nil:
		return DeclaredKey{Bytes: []byte(*c.Declared.Text)}
	}
	decoded, err := hex.DecodeString(*c.Declared.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return DeclaredKey{Bytes: decoded}
}

func (c keyCase) check(t *testing.T) error {
	t.Helper()
	key := c.key(t)
	if got := hex.EncodeToString(key.Bytes); got != c.Hex {
		return fmt.Errorf("bytes are %s", got)
	}
	document, want := appendValue(nil, key.Tree(), "\n"), appendValue(nil, ordered(t, c.Document), "\n")
	if !bytes.Equal(document, want) {
		return fmt.Errorf("in the document it is %s; want %s", document, want)
	}
	if got := crc32.ChecksumIEEE(key.Bytes); got != c.Crc32 {
		return fmt.Errorf("crc32 is %d", got)
	}
	for text, want := range c.Buckets {
		count, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		if got := Bucket(key.Bytes, uint32(count)); got != want {
			return fmt.Errorf("bucket of %d is %d; want %d", count, got, want)
		}
	}
	return nil
}

func TestKeyVectors(t *testing.T) {
	var file struct{ Cases []keyCase }
	vector.Read(t, "keys.json", &file)
	for _, c := range file.Cases {
		if err := c.check(t); err != nil {
			t.Errorf("%s: %v", c.Hex, err)
		}
	}
}

type hashCase struct {
	Name          string
	Document      string
	Value         json.RawMessage
	InterfaceHash string `json:"interface_hash"`
}

func (c hashCase) hash(t *testing.T) string {
	t.Helper()
	if c.Document != "" {
		vector.Read(t, c.Document, &c.Value)
	}
	return InterfaceHash(ordered(t, c.Value).(Object))
}

func TestInterfaceHashVectors(t *testing.T) {
	var file struct{ Files, Documents []hashCase }
	vector.Read(t, "interface_hash.json", &file)
	if len(file.Files) == 0 || len(file.Documents) == 0 {
		t.Error("no cases")
	}
	for _, c := range append(file.Files, file.Documents...) {
		if got := c.hash(t); got != c.InterfaceHash {
			t.Errorf("%s: %s; want %s", c.Name, got, c.InterfaceHash)
		}
	}
}

func TestWrongVectorsFail(t *testing.T) {
	var file struct {
		Canonical     []textCase
		Keys          []keyCase
		InterfaceHash []hashCase `json:"interface_hash"`
	}
	vector.Read(t, "selftest.json", &file)
	for _, c := range file.Canonical {
		if writeText(t, c) == c.Canonical {
			t.Errorf("%s: passed", c.Name)
		}
	}
	for _, c := range file.InterfaceHash {
		if c.hash(t) == c.InterfaceHash {
			t.Errorf("%s: passed", c.Name)
		}
	}
	for _, c := range file.Keys {
		if c.check(t) == nil {
			t.Errorf("key %s: passed", c.Hex)
		}
	}
}

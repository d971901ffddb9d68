package piece_test

import (
	"encoding/hex"
	"testing"

	"wallarooapi/internal/frame"
	"wallarooapi/internal/piece"
	"wallarooapi/internal/testdata/vector"
)

// join reads entries of a state log, which are pieces, and returns the last state.
func join(t *testing.T, entries []string) (state string, err error) {
	t.Helper()
	joiner := piece.Joiner{}
	for _, entry := range entries {
		data, err := hex.DecodeString(entry)
		if err != nil {
			t.Fatal(err)
		}
		f := frame.Frame{}
		if _, err := f.Read(data); err != nil {
			return "", err
		}
		found := f.Values
		if piece.Is(&f) {
			found, err = joiner.Take(&f)
		} else {
			err = joiner.End()
		}
		if err != nil {
			return "", err
		}
		state = hex.EncodeToString(found)
	}
	return state, joiner.End()
}

func TestPieceVectors(t *testing.T) {
	var file struct {
		Valid, Invalid []struct {
			Name, State string
			Entries     []string
		}
	}
	vector.Read(t, "pieces.json", &file)
	for _, c := range file.Valid {
		if state, err := join(t, c.Entries); err != nil || state != c.State {
			t.Errorf("%s: %s, %v", c.Name, state, err)
		}
	}
	for _, c := range file.Invalid {
		if state, err := join(t, c.Entries); err == nil {
			t.Errorf("%s: was read as %s", c.Name, state)
		}
	}
	if len(file.Valid) == 0 || len(file.Invalid) == 0 {
		t.Error("there are no cases")
	}
}

package wallarootest_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"wallarooapi/internal/testdata/vector"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

func same(line []byte) ([]byte, error) { return line, nil }

// echo writes each line again.
func echo(t wallarootest.T) *wallarootest.App {
	app := stream.New("Echo")
	lines := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.Newline, same))
	lines.To(stream.LineSink("127.0.0.1:7002", same))
	return wallarootest.New(t, app)
}

// linesOf cuts a stream byte by byte.
func linesOf(data []byte) (lines []string) {
	line := []byte{}
	for _, b := range data {
		if b == '\n' {
			lines = append(lines, strings.TrimSuffix(string(line), "\r"))
			line = line[:0]
			continue
		}
		line = append(line, b)
	}
	return lines
}

func outputs(app *wallarootest.App) (values []string) {
	for _, record := range app.Records("Echo") {
		values = append(values, string(record.Value))
	}
	return values
}

func expectLines(t *testing.T, data []byte, lines []string) {
	t.Helper()
	app := echo(t)
	if len(data) > 0 {
		app.SendWire("lines", data)
	}
	var want []string
	for _, line := range lines {
		want = append(want, line+"\n")
	}
	if got := outputs(app); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q: got %q, want %q", data, got, want)
	}
}

func TestLinesAreCutAsTheReferenceCutsThem(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		data := make([]byte, random.IntN(30))
		for i := range data {
			data[i] = "ab\r\n\n\xff\x00"[random.IntN(7)]
		}
		data = append(data, '\n')
		expectLines(t, data, linesOf(data))
	}
}

func TestLineVectors(t *testing.T) {
	var file struct {
		Cases []struct {
			Framing  struct{ Kind string }
			Pieces   []string
			Messages []string
			End      string
		}
	}
	vector.Read(t, "framing.json", &file)
	count := 0
	for _, c := range file.Cases {
		if c.Framing.Kind != "newline" || c.End != "clean" {
			continue
		}
		count++
		data, _ := hex.DecodeString(strings.Join(c.Pieces, ""))
		if len(data) > 0 && !bytes.HasSuffix(data, []byte{'\n'}) {
			data = append(data, '\n') // as the gateway ends a last line
		}
		var messages []string
		for _, message := range c.Messages {
			line, _ := hex.DecodeString(message)
			messages = append(messages, string(line))
		}
		expectLines(t, data, messages)
	}
	if count < 8 {
		t.Errorf("%d cases", count)
	}
}

func TestALineBreakInALineIsADeadLetter(t *testing.T) {
	app := echo(t)
	app.Send("lines", "a\nb", "c")
	if got := outputs(app); len(got) != 1 || got[0] != "c\n" {
		t.Errorf("got %q", got)
	}
	letters := app.DeadLetters()
	if len(letters) != 1 || letters[0].Code != "C501" || !strings.Contains(letters[0].Reason, "there is a line break in the line") {
		t.Errorf("got %v", letters)
	}
}

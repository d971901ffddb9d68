package wallarootest_test

import (
	"context"
	"errors"
	"testing"

	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// digits is a state whose codec keeps the bytes that it decodes.
type digits []byte

type digitsCodec struct{}

func (digitsCodec) Encode(d digits) ([]byte, error)    { return d, nil }
func (digitsCodec) Decode(data []byte) (digits, error) { return data, nil }

func init() { stream.Register(digitsCodec{}) }

// Messages that change the state and then fail have no effect on it, however many there are.
func TestAStateThatKeepsItsBytesIsRestored(t *testing.T) {
	app := stream.New("Digits")
	lines := stream.Collect(stream.From(app, "Lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode)))
	stream.MapState(lines, "count", func(_ context.Context, line string, state *digits) (string, error) {
		if len(*state) == 0 {
			*state = digits("0")
		}
		(*state)[0]++
		if line == "bad" {
			return "", errors.New("bad")
		}
		return string(*state), nil
	}).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	run := wallarootest.New(t, app)
	run.Send("Lines", "a", "bad", "bad", "bad", "b")
	run.Send("Lines", "bad", "bad", "c")
	wallarootest.Equal(t, run.Lines("Digits"), []string{"1", "2", "3"})
	wallarootest.Equal(t, len(run.DeadLetters()), 5)
	wallarootest.Equal(t, string(wallarootest.State[digits](run, "count", "")), "3")
}

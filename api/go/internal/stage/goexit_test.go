package stage_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// leaving is a generator and a decoder that end their goroutine after a number of calls.
type leaving struct {
	after int
	calls *int
}

func (l leaving) InitialValue() any { return l.Apply("") }

func (l leaving) Apply(any) any {
	if *l.calls++; *l.calls > l.after {
		runtime.Goexit()
	}
	return "message"
}

func (l leaving) HeaderLength() uint64 { return 1 }

func (l leaving) PayloadLength(header []byte) uint64 {
	l.Apply(nil)
	return uint64(header[0])
}

func (l leaving) Decode(payload []byte) any { return payload }

func TestGoexitInGenerateIsAFinding(t *testing.T) {
	for after := range 5 {
		source := &declaration.Source{Name: "numbers", Generator: leaving{after, new(int)}}
		reply := &pb.GenerateReply{}
		err := stage.Generate(source, &pb.GenerateRequest{Begins: true, MaxCount: 10, MaxBytes: 1000}, reply)
		expectGoexit(t, err, "C501", "numbers: called runtime.Goexit")
		if len(reply.GetValues()) != after || reply.GetEnded() {
			t.Errorf("after %d: %v", after, reply)
		}
	}
}

func TestGoexitInSplitFramesIsAFinding(t *testing.T) {
	for after := range 3 {
		decoder := leaving{after, new(int)}
		framing := topology.Framing{Kind: topology.WorkerFraming, HeaderBytes: 1}
		edge := &topology.TCP{Framing: framing}
		source := &declaration.Source{Name: "lines", Edge: edge, Given: decoder, Decoder: decoder, Framed: decoder}
		lengths, wanted, err := stage.Split(source, []byte("\x01a\x01b\x01c\x01d"), 100)
		expectGoexit(t, err, "C505", "lines: called runtime.Goexit")
		if wanted != 0 || len(lengths) != 0 {
			t.Errorf("after %d: %v, %d", after, lengths, wanted)
		}
	}
}

func expectGoexit(t *testing.T, err error, code, reason string) {
	t.Helper()
	failed := &stage.Failure{}
	if !errors.As(err, &failed) || failed.Code != code || !strings.HasPrefix(failed.Reason, reason) {
		t.Errorf("%v; expected %s %s", err, code, reason)
	}
}

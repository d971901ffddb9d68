package otel

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	opentelemetry "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	pb "wallarooapi/internal/workerpb"
	"wallarooapi/stream"
)

var (
	mapStage = &pb.Stage{Id: "s0", BucketCount: 1, Nodes: []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/sources/0"}},
		{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 1},
	}}
	stateStage = &pb.Stage{Id: "s1", BucketCount: 1, Nodes: []*pb.Node{
		{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: 1, StatePort: 2},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/2"}, Port: 3},
	}}
)

// seen has the span that the program's function started for each message.
type seen struct {
	mutex sync.Mutex
	by    map[string]trace.SpanContext
}

// visit starts a span as user code does, and a child of it.
func (s *seen) visit(ctx context.Context, text string) {
	ctx, outer := opentelemetry.Tracer("user").Start(ctx, "outer")
	defer outer.End()
	_, inner := opentelemetry.Tracer("user").Start(ctx, "inner")
	defer inner.End()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.by[text] = outer.SpanContext()
}

// program is an application that calls visit for each message, in a step without state or with state.
func program(s *seen) *declaration.Application {
	app := stream.New("Words")
	texts := stream.From(app, "texts", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	mapped := stream.Map(texts, "visit", func(ctx context.Context, text string) (string, error) {
		s.visit(ctx, text)
		return text, nil
	})
	count := func(ctx context.Context, text string, count *int64) (string, error) {
		s.visit(ctx, text)
		*count++
		return text, nil
	}
	stream.MapState(stream.Collect(mapped), "count", count).To(stream.TCPSink("127.0.0.1:7002", stream.Text.Encode))
	return declaration.Revealed(app)
}

// framed returns a frame with one message, in the form for the source's stage or for the state step.
func framed(t *testing.T, app *declaration.Application, text string, hasState bool) (found []byte) {
	t.Helper()
	found, err := frame.WriteFramed(0, 0, 0, 1, append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	if err != nil || !hasState {
		return found
	}
	x, err := stage.New(app, mapStage)
	if err == nil {
		err = x.Run(found, func(_ uint16, _ int32, bytes []byte) error {
			found = bytes
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// drawn describes the actions of a stream.
type drawn struct {
	hasState bool
	trace    [16]byte
	parent   [8]byte
	header   string
	calls    [][]string // their messages
	ending   string     // "finish", "cancel", "fail", or "left" open until the worker ends
}

func (d *drawn) sampled() bool { return strings.HasSuffix(d.header, "01") }

func (d *drawn) method() string {
	if d.hasState {
		return "ProcessState"
	}
	return "Process"
}

func draw(random *rand.Rand, number int) *drawn {
	d := &drawn{hasState: random.IntN(2) == 0, ending: []string{"finish", "cancel", "fail", "left"}[random.IntN(4)]}
	binary.BigEndian.PutUint64(d.trace[:], random.Uint64()|1)
	binary.BigEndian.PutUint64(d.parent[:], random.Uint64()|1)
	if flags := []string{"01", "01", "00", ""}[random.IntN(4)]; flags != "" {
		d.header = fmt.Sprintf("00-%x-%x-%s", d.trace, d.parent, flags)
	}
	for call := range random.IntN(4) {
		var messages []string
		for message := range 1 + random.IntN(3) {
			messages = append(messages, fmt.Sprintf("%d.%d.%d", number, call, message))
		}
		d.calls = append(d.calls, messages)
	}
	return d
}

// open begins a stream. It returns the actions of the stream as functions: a request, its replies, or the end of the
// stream.
func (d *drawn) open(t *testing.T, connection *grpc.ClientConn, app *declaration.Application) (steps []func()) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if d.header != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", d.header)
	}
	talk := talking(t, connection, ctx, d.hasState)
	talk.open()
	for index, messages := range d.calls {
		var frames []byte
		for _, text := range messages {
			frames = append(frames, framed(t, app, text, d.hasState)...)
		}
		steps = append(steps, func() { talk.send(uint64(index), frames) }, func() { talk.await(uint64(index)) })
	}
	switch d.ending {
	case "finish":
		return append(steps, talk.close, talk.awaitEnd)
	case "cancel":
		return append(steps, cancel)
	case "fail":
		return append(steps, talk.open, talk.awaitFailure)
	}
	return steps
}

// Package stage runs stages: the steps of a topology between two shuffles. Within a stage, messages pass from step to
// step as live objects. They become objects at the entry of the stage, and bytes at its exit.
package stage

import (
	"context"
	"fmt"
	"strings"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/emission"
	"wallarooapi/internal/flight"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/piece"
	pb "wallarooapi/internal/workerpb"
)

const (
	defaultFrameBytes = 1 << 20
	maxFrameBytes     = 15 << 20
)

// Emit receives one frame of messages that leave a stage. port stands for the part that gets them: a state step, a
// sink, or another stage. bucket is the bucket of their keys, or -1 if no state step gets them. Emit may keep the
// frame.
type Emit func(port uint16, bucket int32, frame []byte) error

// Failure is the reason why a stage cannot continue, e.g. a damaged frame. A fault of a single message is a dead
// letter.
type Failure struct {
	Code      string
	Reason    string
	Traceback string
	// IsOfState means that a state cannot be serialized. The call then runs again message by message to find the cause.
	IsOfState bool
}

func newFailure(code, reason, traceback string) *Failure {
	return &Failure{Code: code, Reason: reason, Traceback: traceback}
}

// Error returns the code of the failure and the reason.
func (f *Failure) Error() string { return f.Code + " " + f.Reason }

func damaged(err error) error {
	return &Failure{Code: "W410", Reason: "a frame is damaged; " + err.Error()}
}

// Executor runs one stage for one stream of calls from the runtime. It is not safe for concurrent use.
type Executor struct {
	nodes   []*node
	entries map[uint16]*node
	exits   []exit
	dead    *writer
	decoder *codec.Decoder
	emit    Emit
	err     error // error of emit, or another reason to stop

	frame     frame.Frame
	fromPort  uint16
	sequence  uint64
	timestamp int64
	key       []byte // key of the message in flight; nil means the empty key

	flight  *flight.File
	ordinal uint64              // number of the next message in the call, from 0
	skips   map[uint64]*pb.Skip // messages that must not be processed, by their ordinals (see Begin)

	keyed      keyed
	hasTimes   bool // messages of outputs have timestamps
	hasWindows bool
	hasStates  bool       // the stage has state steps that are not windows
	timed      []*timed   // states with timers or a TTL
	arrivals   []*arrival // messages and ticks of windows in the current call
	visited    []*pb.Visited

	inTest bool // see InTest
}

// node is one node of a stage: a source, step or sink, or an entry or exit for messages of another stage.
type node struct {
	path, name string
	kind       pb.NodeKind
	x          *Executor
	next       []*node
	outputs    map[string]*node // OUTPUT nodes of a computation or window, by name

	count

	step        *declaration.Step // step that runs user code; nil for other nodes
	source      *entry
	received    *received
	computation declaration.Stateless
	stateful    *stateful
	keyOf       func(any) []byte // for a key_by; nil for a collect
	exit        exit
}

// exit collects messages that leave a stage. flush emits those that write has not emitted yet.
type exit interface {
	write(value any)
	flush()
}

// NewWithin compiles a stage of an application. ctx is the context that user functions get.
func NewWithin(ctx context.Context, application *declaration.Application, description *pb.Stage) (*Executor, error) {
	unseen, err := flight.Open("")
	if err != nil {
		return nil, err
	}
	x := &Executor{entries: map[uint16]*node{}, decoder: codec.NewDecoder(), flight: unseen}
	x.keyed.maxBytes, x.keyed.pieceBytes = MaxStateBytes, piece.Bytes
	x.dead = newWriter(x, frame.DeadLetterPort, -1, frameBytes(description), frame.Plain)
	parts := application.Parts()
	byPath := map[string]*node{}
	for _, d := range description.GetNodes() {
		n := &node{path: d.GetPath(), kind: d.GetKind(), x: x, outputs: map[string]*node{}}
		n.step = hosted(ctx, d, application, parts)
		if err := x.compile(n, d, description, parts); err != nil {
			return nil, err
		}
		if err := x.connect(n, d, byPath); err != nil {
			return nil, err
		}
		x.nodes, x.hasTimes = append(x.nodes, n), x.hasTimes || d.GetTimestamps()
	}
	for _, n := range x.nodes {
		if n.received == nil {
			continue
		}
		if err := n.divide(); err != nil {
			return nil, err
		}
	}
	return x, x.findTimed(description)
}

// frameBytes returns the size at which a frame is emitted.
func frameBytes(description *pb.Stage) int {
	if description.GetFrameBytes() == 0 {
		return defaultFrameBytes
	}
	return min(int(description.GetFrameBytes()), maxFrameBytes)
}

// connect adds a node to the successors of its inputs, and to byPath, in which later nodes find it.
func (x *Executor) connect(n *node, d *pb.Node, byPath map[string]*node) error {
	for _, input := range d.GetInputs() {
		from, ok := byPath[input]
		if !ok {
			return &Failure{Code: "W403", Reason: fmt.Sprintf("%s reads from %s, which does not stand before it in the stage", n.path, input)}
		}
		from.leadTo(n, d)
	}
	// A KEY exit has the path of its state step. Other nodes of the stage cannot read from it.
	if n.exit == nil {
		byPath[n.path] = n
	}
	return nil
}

// compile sets the fields of a node that depend on its kind. It fails if this program does not have the user code.
func (x *Executor) compile(n *node, d *pb.Node, description *pb.Stage, parts declaration.Parts) (err error) {
	port, step := uint16(d.GetPort()), n.step
	n.name = parts.NameOf(n.path)
	if step != nil {
		n.name = step.Name
	}
	switch n.kind {
	case pb.NodeKind_NODE_KIND_SOURCE:
		if source := parts.Sources[n.path]; source != nil {
			n.source = newEntry(source)
			n.source.x, x.entries[port] = x, n
			if d.GetArrival() {
				n.source.eventTime = nil
			}
			return nil
		}
	case pb.NodeKind_NODE_KIND_RECEIVE:
		n.received, x.entries[port] = newReceived(d, parts), n
		return nil
	case pb.NodeKind_NODE_KIND_COMPUTATION, pb.NodeKind_NODE_KIND_COMPUTATION_MULTI:
		if isStep(step, n.kind) {
			return x.build(n, step)
		}
	case pb.NodeKind_NODE_KIND_STATE_COMPUTATION, pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI, pb.NodeKind_NODE_KIND_WINDOW:
		if isStep(step, n.kind) {
			x.entries[port] = n
			return x.enterState(n, d)
		}
	case pb.NodeKind_NODE_KIND_KEY_BY, pb.NodeKind_NODE_KIND_COLLECT:
		if isStep(step, n.kind) {
			n.keyOf = step.Partition
			return nil
		}
	case pb.NodeKind_NODE_KIND_OUTPUT:
		if d.GetOutput() != "" && len(d.GetInputs()) == 1 {
			return nil
		}
	case pb.NodeKind_NODE_KIND_KEY:
		if (step == nil || step.State != nil) && description.GetBucketCount() > 0 {
			n.exit, err = newKeyExit(n, d, description)
			return x.leave(n, err)
		}
	case pb.NodeKind_NODE_KIND_SEND:
		n.exit, err = newSend(n, d, description)
		return x.leave(n, err)
	case pb.NodeKind_NODE_KIND_SINK:
		if sink := parts.Sinks[n.path]; sink != nil {
			n.name = sink.Name
			n.exit = newSink(n, sink, newWriter(x, port, -1, frameBytes(description), frame.Plain))
			return x.leave(n, nil)
		}
	}
	what := kindName(n.kind)
	if d.GetComponent() != "" {
		what = fmt.Sprintf("%s %q", what, d.GetComponent())
	}
	return &Failure{Code: "W403", Reason: fmt.Sprintf("this worker has no %s at %s", what, n.path)}
}

// leave adds the exit of a node to the exits of the stage. It returns err, the error of making this exit.
func (x *Executor) leave(n *node, err error) error {
	x.exits = append(x.exits, n.exit)
	return err
}

// enterState sets the fields of a node that is a state step or a window.
func (x *Executor) enterState(n *node, d *pb.Node) error {
	form, err := x.readerOf(d, n.step.Input)
	if err != nil {
		return err
	}
	if n.kind != pb.NodeKind_NODE_KIND_WINDOW {
		x.hasStates = true
		n.stateful = newStateful(n.step, d, form)
		return n.takeVisits(d.GetVisits())
	}
	x.hasWindows = true
	step := *n.step
	step.Aggregation = watched{step.Aggregation, n}
	n.stateful, err = newWindow(&step, d, form)
	return err
}

// isStep reports whether step is not nil and of a kind.
func isStep(step *declaration.Step, kind pb.NodeKind) bool {
	return step != nil && strings.ToUpper(step.Kind) == kindName(kind)
}

// kindName returns the name of a kind for display: the name in the protocol without its prefix.
func kindName(kind pb.NodeKind) string {
	return strings.TrimPrefix(kind.String(), "NODE_KIND_")
}

// build makes the computation of a step without state. Each stream has its own computation object.
func (x *Executor) build(n *node, step *declaration.Step) (err error) {
	defer caughtIn(n.name, &err)
	n.computation = step.Build()
	return nil
}

// Watch sets the record in which the executor notes the message in flight, so that the runtime knows which message has
// ended or hung this process.
func (x *Executor) Watch(record *flight.File) { x.flight = record }

// Run processes the messages of one or more whole frames for a stage without state steps, and emits all outputs.
func (x *Executor) Run(frames []byte, emit Emit) error {
	if err := x.feed(frames, emit); err != nil {
		return err
	}
	x.flush()
	return x.err
}

func (x *Executor) feed(frames []byte, emit Emit) error {
	x.emit, x.err = emit, nil
	return x.attended(func() error { return x.feedAll(frames) })
}

func (x *Executor) feedAll(frames []byte) (err error) {
	for len(frames) > 0 {
		if frames, err = x.frame.Read(frames); err != nil {
			return damaged(err)
		}
		if x.frame.Port == frame.TickPort {
			if tick := x.tick(); x.hasWindows {
				x.arrivals = append(x.arrivals, tick)
			}
			continue
		}
		n, err := x.entry()
		if err != nil {
			return err
		}
		x.decoder.Reset()
		switch {
		case x.frame.Count == 0:
		case n.source != nil:
			err = x.runSource(n)
		case n.received != nil:
			err = x.runReceived(n)
		case n.stateful.windows != nil:
			err = x.take(n, &x.arrivals)
		default:
			err = x.runState(n)
		}
		if err == nil {
			err = x.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry returns the node that receives the current frame.
func (x *Executor) entry() (*node, error) {
	n, ok := x.entries[x.frame.Port]
	if !ok {
		return nil, damaged(fmt.Errorf("no node of the stage takes port %d", x.frame.Port))
	}
	return n, nil
}

func (x *Executor) flush() {
	for _, e := range x.exits {
		e.flush()
	}
	x.dead.flush()
}

// receive processes one message in a node and in its successors.
func (n *node) receive(value any) {
	n.in++
	switch {
	case n.exit != nil:
		n.exit.write(value)
	case n.computation != nil:
		results := n.compute(value)
		n.give(&results)
	default:
		n.rekey(value)
	}
}

// give passes the results of a user function to the successors of the node.
func (n *node) give(results *emission.Results) {
	n.forward(results.One)
	for _, item := range results.Many {
		n.forward(item)
	}
}

// forward passes a result to the successors of the node, or to the named output that the result is for. It drops nil.
func (n *node) forward(value any) {
	switch result := value.(type) {
	case nil:
		return
	case wa.Output:
		n.emitTo(result)
		return
	}
	n.out++
	for _, next := range n.next {
		next.receive(value)
	}
}

func (n *node) compute(value any) emission.Results {
	defer n.rescue(value)
	results := n.computation.Compute(value)
	n.admit(&results)
	return results
}

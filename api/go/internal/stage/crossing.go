package stage

import (
	"fmt"
	"reflect"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
)

// writing serializes the messages of frames, one frame after the other. It is a *codec.Encoder or a built-in codec.
type writing interface {
	Append(out []byte, value any) ([]byte, error)
	Encoding() byte
	Reset()
}

// valueReader deserializes the messages of frames. It must read all of them and in order, because the bytes of a
// message may need a type description in an earlier one.
type valueReader interface {
	Decode(encoding byte, data []byte) (any, error)
}

// writingOf makes the serializer for messages that leave the stage at a node.
func writingOf(d *pb.Node) (writing, error) {
	if d.GetCodec() == "" {
		return codec.NewEncoder(), nil
	}
	return builtinOf(d)
}

// readerOf returns the reader for messages that enter the stage at a node. If t is not nil, a message in a built-in
// codec becomes a value of type t.
func (x *Executor) readerOf(d *pb.Node, t reflect.Type) (valueReader, error) {
	if d.GetCodec() == "" {
		return x.decoder, nil
	}
	form, err := builtinOf(d)
	return form.As(t), err
}

// builtinOf returns the built-in codec that a node names. Messages to or from another program have such a codec.
func builtinOf(d *pb.Node) (codec.Builtin, error) {
	form, ok := codec.BuiltinOf(d.GetCodec())
	if !ok {
		expected, _ := codec.Expected(d.GetCodec())
		return form, &Failure{Code: "W410", Reason: fmt.Sprintf("%s has codec %q; expected %s", d.GetPath(), d.GetCodec(), expected)}
	}
	return form, nil
}

// received has the fields of a RECEIVE node: an entry for messages that another stage of the same task sends.
type received struct {
	description *pb.Node
	output      reflect.Type // output type of the source or step that sends the messages; nil if unknown in this program
	groups      []group
}

// group holds the successors of a RECEIVE node that take messages of one type. A message is read once for each group.
type group struct {
	form  valueReader
	nodes []*node
}

// newReceived makes the fields of a RECEIVE node. The source or step that sends the messages may belong to another
// program.
func newReceived(d *pb.Node, parts declaration.Parts) *received {
	r := &received{description: d}
	if source := parts.Sources[d.GetPath()]; source != nil {
		r.output = source.Output
	} else if step := parts.Steps[d.GetPath()]; step != nil {
		r.output = step.Output
	}
	return r
}

// divide groups the successors of a RECEIVE node by the type of their messages. This type is the output type of the
// sender, or, if this program does not know the sender, the input type of the successor's function.
func (n *node) divide() error {
	last := reflect.Type(nil)
	for i, next := range n.next {
		t := n.received.output
		if t == nil && n.received.description.GetCodec() != "" && next.step != nil {
			t = next.step.Input
		}
		if i == 0 || t != last {
			form, err := n.x.readerOf(n.received.description, t)
			if err != nil {
				return err
			}
			n.received.groups = append(n.received.groups, group{form: form})
		}
		at := &n.received.groups[len(n.received.groups)-1]
		at.nodes, last = append(at.nodes, next), t
	}
	return nil
}

// runReceived processes the messages of the current frame, which another stage has sent.
func (x *Executor) runReceived(n *node) error {
	f := &x.frame
	if f.Encoding == frame.Framed || f.HasAbsent() || (n.received.description.GetCodec() != "") != (f.Encoding == codec.Plain) {
		return damaged(fmt.Errorf("a frame for %s has values of encoding %d or none", n.path, f.Encoding))
	}
	data := f.Values
	for i := 0; i < f.Count && x.err == nil; i++ {
		length := f.Lengths.At(i)
		value := data[:length:length]
		data = data[length:]
		x.begin(i)
		if f.Flags&frame.FlagKeys != 0 {
			x.key = f.Keys[f.KeyIndexes.At(i)]
		}
		if skip := x.enter(); skip != nil {
			n.skip(skip, value)
			continue
		}
		for _, group := range n.received.groups {
			if message, ok := n.readBack(group.form, value); ok && message != nil {
				for _, next := range group.nodes {
					next.receive(message)
				}
			}
		}
	}
	return nil
}

// readBack deserializes a message of the current frame. If the message cannot be read, it becomes a dead letter, and ok
// is false.
func (n *node) readBack(form valueReader, value []byte) (message any, ok bool) {
	message, err := form.Decode(n.x.frame.Encoding, value)
	if err == nil {
		return message, true
	}
	if form, coded := form.(codec.Builtin); coded {
		n.buryBytes("C505", value, n.x.frame.Encoding, fmt.Sprintf("it is not in codec %q; %v", form.Name, err), "")
	} else {
		n.buryBytes("C504", value, n.x.frame.Encoding, "the message cannot be read back; "+err.Error(), codec.StackOf(err))
	}
	return nil, false
}

// buryUnwritten makes a dead letter of a message that cannot be serialized at an exit.
func (n *node) buryUnwritten(form writing, value any, err error) {
	if form, coded := form.(codec.Builtin); coded {
		n.bury("C504", value, fmt.Sprintf("it cannot be written in codec %q; %v", form.Name, err), "")
		return
	}
	n.bury("C504", value, fmt.Sprintf("%T cannot be serialized; %v; %s", value, err, codec.Remedy(err)), codec.StackOf(err))
}

// leadTo adds a successor to the node. A successor of kind SEND is no step, so it gets the name of the node, for dead
// letters.
func (n *node) leadTo(next *node, d *pb.Node) {
	switch next.kind {
	case pb.NodeKind_NODE_KIND_OUTPUT:
		n.outputs[d.GetOutput()] = next
		return
	case pb.NodeKind_NODE_KIND_SEND:
		next.name = n.name
	}
	n.next = append(n.next, next)
}

// sendExit serializes the messages of a source or step for other stages in the same task.
type sendExit struct {
	node    *node
	writer  *writer
	hasKeys bool
	keys    positions
}

func newSend(n *node, d *pb.Node, description *pb.Stage) (*sendExit, error) {
	form, err := writingOf(d)
	if err != nil {
		return nil, err
	}
	w := newWriter(n.x, uint16(d.GetPort()), -1, frameBytes(description), form.Encoding())
	w.encoder, w.timestamps = form, d.GetTimestamps()
	return &sendExit{n, w, d.GetKeys(), positions{known: map[string]uint32{}}}, nil
}

func (s *sendExit) write(value any) {
	w := s.writer
	before := len(w.builder.Buffer())
	buffer, err := w.encoder.Append(w.builder.Buffer(), value)
	if err != nil {
		s.node.buryUnwritten(w.encoder, value, err)
		return
	}
	if s.node.buryIfTooLarge(value, len(buffer)-before, len(s.node.x.key)) {
		w.abandon()
		return
	}
	if s.hasKeys {
		s.keys.use(w, s.node.x.key)
	}
	w.extend(buffer)
}

func (s *sendExit) flush() { s.writer.flush() }

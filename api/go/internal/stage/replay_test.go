package stage_test

import (
	"fmt"
	"reflect"
	"testing"
	"testing/quick"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/example"
	"wallarooapi/internal/frame"
	pb "wallarooapi/internal/workerpb"
)

// parcel is a message of many types.
type parcel struct {
	Name    string
	Numbers []int64
	Weights map[string]float64
	Within  *parcel
}

// failing fails on all messages until it is corrected; then it keeps what comes to it.
type failing struct {
	corrected bool
	got       []any
}

func (f *failing) Name() string { return "failing" }

func (f *failing) Build() any { return f }

func (f *failing) Compute(data any) any {
	if !f.corrected {
		panic("not corrected")
	}
	f.got = append(f.got, data)
	return nil
}

// given is a decoder whose messages are those of a list.
type given struct {
	example.Lines
	messages []any
}

func (g *given) Decode(b []byte) any { return g.messages[b[0]] }

func failingApp(t testing.TB, messages []any, step *failing) *declaration.Application {
	t.Helper()
	wa.RegisterType(&parcel{})
	app := application.MakeApplication("Failing")
	app.NewPipeline("Failing", application.MakeTCPSourceConfig("127.0.0.1", "7010", &given{messages: messages})).
		To(step).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", text{}))
	return declared(t, app)
}

var (
	failingStage = &pb.Stage{Id: "s0", BucketCount: 1, FrameBytes: 1 << 20, Nodes: []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 0},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/sources/0"}},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}}
	replayStage = &pb.Stage{Id: "s0-0/steps/0", BucketCount: 1, FrameBytes: 1 << 20, Nodes: []*pb.Node{
		{Path: "0/steps/0/replay", Kind: pb.NodeKind_NODE_KIND_RECEIVE, Port: 65532},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION, Inputs: []string{"0/steps/0/replay"}},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/0"}, Port: 2},
	}}
)

// again makes the frame in which the message of a dead letter enters.
func again(t testing.TB, letter *pb.DeadLetter, encoding byte) []byte {
	t.Helper()
	b := frame.Builder{Port: 65532, Encoding: encoding}
	b.UseSequence(letter.GetSequence())
	b.Add(letter.GetInput())
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestMessagesOfDeadLettersAreWhatTheyWere(t *testing.T) {
	defer example.SetSerialize(false)()
	same := func(name string, number int64, data []byte, parcels []*parcel) bool {
		messages := []any{name, number, append([]byte{}, data...), &name}
		for _, each := range parcels {
			if each != nil {
				messages = append(messages, each)
			}
		}
		texts := make([]string, len(messages))
		for i := range messages {
			texts[i] = string([]byte{byte(i)})
		}
		step := &failing{}
		app := failingApp(t, messages, step)
		letters := collect(t, run(t, newExecutor(t, app, failingStage), framed(t, texts...))).letters
		step.corrected = true
		x := newExecutor(t, app, replayStage)
		for _, letter := range letters {
			if failed := collect(t, run(t, x, again(t, letter, byte(letter.GetEncoding())))).letters; len(failed) > 0 {
				t.Fatal(failed)
			}
		}
		return len(letters) == len(messages) && fmt.Sprintf("%+v", shallow(step.got)) == fmt.Sprintf("%+v", shallow(messages))
	}
	if err := quick.Check(same, &quick.Config{MaxCount: 60}); err != nil {
		t.Error(err)
	}
}

// shallow shows values in place of pointers; an empty slice or map is none, as gob has it.
func shallow(values []any) (texts []string) {
	for _, each := range values {
		for v := reflect.ValueOf(each); ; v = v.Elem() {
			if v.Kind() != reflect.Pointer {
				texts = append(texts, fmt.Sprintf("%T %+v", each, v.Interface()))
				break
			}
			if found, ok := each.(*parcel); ok {
				texts = append(texts, found.text())
				break
			}
		}
	}
	return texts
}

func (p *parcel) text() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%q %v %v [%s]", p.Name, p.Numbers, p.Weights, p.Within.text())
}

func TestAnEncodingThatIsNotReadIsADeadLetterAgain(t *testing.T) {
	letter := &pb.DeadLetter{Input: []byte("x"), Sequence: 4}
	x := newExecutor(t, failingApp(t, nil, &failing{corrected: true}), replayStage)
	got := collect(t, run(t, x, again(t, letter, 250))).letters
	if len(got) != 1 || got[0].GetCode() != "C504" || got[0].GetPath() != "0/steps/0/replay" || got[0].GetSequence() != 4 {
		t.Errorf("dead letters are %v", got)
	}
}

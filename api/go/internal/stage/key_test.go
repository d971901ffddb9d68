package stage_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// records is the decoder of the tests in this file. Its method encode is the encoder.
type records struct{}

func (records) Decode(b []byte) any { return string(b) }

func (records) DecodeRecord(value []byte, record declaration.Record) any {
	if value == nil {
		return fmt.Sprintf("none %s %d %x", record.Key, record.TimestampMs, record.Headers)
	}
	if string(value) == "unreadable" {
		panic("cannot decode")
	}
	return fmt.Sprintf("%s %s %d %x", value, record.Key, record.TimestampMs, record.Headers)
}

func encode(data any) (value, key []byte, partition int32) {
	text := data.(string)
	switch {
	case strings.HasPrefix(text, "drop"):
		return nil, nil, -1
	case strings.HasPrefix(text, "panic"):
		panic("cannot encode")
	}
	return []byte(text), []byte(text[:1]), int32(len(text)%3) - 1
}

// recordApp declares an application that reads records of Kafka, sets keys, and writes records to Kafka.
func recordApp() *declaration.Application {
	decoded := &declaration.Source{Path: "0/sources/0", Name: "in", Edge: &topology.Kafka{}, Given: records{}, Decoder: records{}}
	made := &declaration.Source{Path: "1/sources/0", Name: "made", Edge: &topology.Generator{}, Generator: countdown{}}
	byFirst := func(data any) []byte {
		if text := data.(string); text[0] == '?' {
			return nil
		}
		return example.FirstLetter{}.Partition(data)
	}
	byKey := &declaration.State{Name: "totals", Builder: example.TotalsBuilder{}, ByKey: true}
	steps := []*declaration.Step{
		{Path: "0/steps/0", Name: "first", Kind: declaration.KeyBy, Partition: byFirst},
		{Path: "0/steps/1", Name: "all", Kind: declaration.Collect},
		{Path: "0/steps/2", Name: "count", Kind: declaration.StateComputation, Stateful: declaration.FunctionsOf(example.CountWords{}), State: byKey},
		{Path: "0/steps/3", Name: "again", Kind: declaration.StateComputation, Stateful: declaration.FunctionsOf(example.CountWords{}), State: byKey},
	}
	sinks := []*declaration.Sink{{Path: "0/sinks/0", Name: "out", Encode: encode, HasKeys: true}}
	return &declaration.Application{Pipelines: []*declaration.Pipeline{
		{Sources: []*declaration.Source{decoded}, Steps: steps, Sinks: sinks}, {Sources: []*declaration.Source{made}},
	}}
}

// received makes a frame of Kafka records with values, keys and times. A record with an empty value has none.
func received(t *testing.T, values, keys []string) []byte {
	t.Helper()
	b := frame.Builder{Port: 0}
	for i, value := range values {
		b.UseKey(b.AddKey([]byte(keys[i])))
		b.UseTimestamp(int64(100 + i))
		b.UseSequence(uint64(10 + i))
		if value == "" {
			b.AddAbsent()
			continue
		}
		if i == 1 {
			b.UseHeader("h", []byte("v"))
		}
		b.Add([]byte(value))
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// keyedMessage is a message that has left a stage for a state step, or for a sink with keys.
type keyedMessage struct {
	value, key, headers string
	timestamp           int64
}

func readKeyed(t *testing.T, outputs []stage.OutputFrame, port uint16) (all []keyedMessage) {
	t.Helper()
	for _, output := range outputs {
		if output.Port != port {
			continue
		}
		var f frame.Frame
		if _, err := f.Read(output.Frame); err != nil {
			t.Fatal(err)
		}
		for i, value := range values(t, output.Frame) {
			m := keyedMessage{value: string(value), key: string(f.Keys[f.KeyIndexes.At(i)]), timestamp: f.TimestampOf(i)}
			if f.Headers != nil {
				m.headers = fmt.Sprintf("%x", f.Headers[i])
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b keyedMessage) int { return strings.Compare(a.key+a.value, b.key+b.value) })
	return all
}

func TestARecordKeepsItsKeyAndTimeUntilTheNextKey(t *testing.T) {
	x := newExecutor(t, recordApp(), &pb.Stage{Id: "s0", BucketCount: 4, Nodes: []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 0},
		{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/sources/0"}, Port: 1, Timestamps: true},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_KEY_BY, Inputs: []string{"0/sources/0"}},
		{Path: "0/steps/3", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 2},
		{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_COLLECT, Inputs: []string{"0/steps/0"}},
		{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/1"}, Port: 3},
	}})
	outputs := run(t, x, received(t, []string{"ab", "?c", "", "unreadable"}, []string{"k1", "k2", "k1", ""}))
	want := map[uint16]string{
		1: "[{\x01ab k1 100  k1  100} {\x01none k1 102  k1  102} {\x01?c k2 101 0100680100000076 k2  101}]",
		2: "[{\x01ab k1 100  a  100} {\x01none k1 102  n  100}]",
		3: "[{\x01ab k1 100    100} {\x01none k1 102    100}]",
	}
	for port, text := range want {
		if got := fmt.Sprint(readKeyed(t, outputs, port)); got != text {
			t.Errorf("port %d: %q; want %q", port, got, text)
		}
	}
	letters := collect(t, outputs).letters
	if len(letters) != 2 || letters[0].GetCode() != "C503" || letters[1].GetCode() != "C505" {
		t.Fatalf("dead letters are %v", letters)
	}
	if letters[1].GetSequence() != 13 || string(letters[1].GetInput()) != "unreadable" || letters[1].GetEncoding() != 0 {
		t.Errorf("the dead letter is %v", letters[1])
	}
}

func TestAStateStepGivesItsKeyOn(t *testing.T) {
	wa.RegisterType(example.Totals{})
	wa.RegisterType(example.WordCount{})
	x := newExecutor(t, recordApp(), &pb.Stage{Id: "s1", BucketCount: 4, Nodes: []*pb.Node{
		{Path: "0/steps/2", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: 1, StatePort: 1},
		{Path: "0/steps/3", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/2"}, Port: 2},
	}})
	call := x.NewCall(state.NewBucket(), nil)
	if err := call.Run(keyedWords(t, "bar", "cold")); err != nil {
		t.Fatal(err)
	}
	outputs, _, _, err := call.Finish(false)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, message := range readKeyed(t, outputs, 2) {
		keys = append(keys, message.key)
	}
	if !slices.Equal(keys, []string{"b", "c"}) {
		t.Errorf("keys are %q", keys)
	}
}

func TestRecordsLeaveWithKeysAndPartitions(t *testing.T) {
	x := newExecutor(t, recordApp(), &pb.Stage{Id: "s0", FrameBytes: 200, Nodes: []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 0},
		{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/sources/0"}, Port: 2},
	}})
	outputs := run(t, x, received(t, []string{"drop", "panic", "a", "bb", "a"}, []string{"", "", "1", "2", "3"}))
	one, two := "0900706172746974696f6e0400000001000000", ""
	got := readKeyed(t, outputs, 2)
	want := []keyedMessage{{"a 1 102 ", "a", one, 100}, {"a 3 104 ", "a", one, 100}, {"bb 2 103 ", "b", two, 100}}
	for i := range want {
		want[i].timestamp = got[i].timestamp
	}
	if !slices.Equal(got, want) {
		t.Errorf("records are %v; want %v", got, want)
	}
	if letters := collect(t, outputs).letters; len(letters) != 1 || letters[0].GetError() != "cannot encode" {
		t.Errorf("dead letters are %v", letters)
	}
}

// countdown is a generator of numbers down to 1. It panics in place of the number 13.
type countdown struct{}

func (countdown) InitialValue() any { return uint64(4) }

func (countdown) Apply(previous any) any {
	switch number := previous.(uint64); number {
	case 1:
		return nil
	case 14:
		panic("unlucky")
	default:
		return number - 1
	}
}

func generate(t *testing.T, request *pb.GenerateRequest) (numbers []uint64, reply *pb.GenerateReply, err error) {
	t.Helper()
	reply = &pb.GenerateReply{}
	err = stage.Generate(recordApp().Pipelines[1].Sources[0], request, reply)
	for _, value := range reply.GetValues() {
		number, size := binary.Uvarint(value[1:])
		if size != len(value)-1 {
			t.Fatalf("a value is %x", value)
		}
		numbers = append(numbers, number)
	}
	return numbers, reply, err
}

func TestAGeneratorGoesOnBehindTheMessageBefore(t *testing.T) {
	numbers, reply, err := generate(t, &pb.GenerateRequest{Begins: true, MaxCount: 2, MaxBytes: 100})
	if err != nil || !slices.Equal(numbers, []uint64{4, 3}) || reply.GetEnded() || reply.GetEncoding() != 17 {
		t.Fatalf("%v, %v, %v", numbers, reply, err)
	}
	numbers, reply, err = generate(t, &pb.GenerateRequest{Previous: reply.GetValues()[1], MaxCount: 10, MaxBytes: 100})
	if err != nil || !slices.Equal(numbers, []uint64{2, 1}) || !reply.GetEnded() {
		t.Fatalf("%v, %v, %v", numbers, reply, err)
	}
	if numbers, _, _ = generate(t, &pb.GenerateRequest{Begins: true, MaxCount: 10, MaxBytes: 1}); len(numbers) != 1 {
		t.Errorf("%v for one byte", numbers)
	}
	release := stage.LimitValues(1)
	_, _, err = generate(t, &pb.GenerateRequest{Begins: true, MaxCount: 10, MaxBytes: 100})
	release()
	if err == nil || !strings.HasPrefix(err.Error(), "C525 ") || !strings.HasSuffix(err.Error(), "; let the generator return smaller messages") {
		t.Errorf("error of a value that is too large is %v", err)
	}
	sixteen := []byte{15, 16}
	numbers, _, err = generate(t, &pb.GenerateRequest{Previous: sixteen, MaxCount: 10, MaxBytes: 100})
	if err == nil || err.Error() != "C501 made: unlucky" || !slices.Equal(numbers, []uint64{15, 14}) {
		t.Errorf("%v, %v", numbers, err)
	}
	if _, _, err = generate(t, &pb.GenerateRequest{Previous: []byte{99}, MaxCount: 1}); err == nil || !strings.HasPrefix(err.Error(), "C505 made: ") {
		t.Errorf("error is %v", err)
	}
}

func TestAGeneratorGoesOnFromWhatWasWrittenBeforeTheProgramHadASerializer(t *testing.T) {
	_, reply, err := generate(t, &pb.GenerateRequest{Begins: true, MaxCount: 1, MaxBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	serialize, deserialize := wa.Serialize, wa.Deserialize
	defer func() { wa.Serialize, wa.Deserialize = serialize, deserialize }()
	wa.Serialize = func(value any) []byte { return []byte{0, byte(value.(uint64))} }
	wa.Deserialize = func(data []byte) any { return uint64(data[1]) }
	request := &pb.GenerateRequest{Previous: reply.GetValues()[0], PreviousEncoding: reply.GetEncoding(), MaxCount: 1}
	numbers, reply, err := generate(t, request)
	if err != nil || !slices.Equal(numbers, []uint64{3}) || reply.GetEncoding() == request.GetPreviousEncoding() {
		t.Fatalf("%v, %v, %v", numbers, reply, err)
	}
	request = &pb.GenerateRequest{Previous: reply.GetValues()[0], PreviousEncoding: reply.GetEncoding(), MaxCount: 1}
	if numbers, _, err = generate(t, request); err != nil || !slices.Equal(numbers, []uint64{2}) {
		t.Fatalf("%v, %v", numbers, err)
	}
}

func TestGeneratedMessagesAreReadBack(t *testing.T) {
	_, reply, err := generate(t, &pb.GenerateRequest{Begins: true, MaxCount: 3, MaxBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	b := frame.Builder{Port: 5, Encoding: byte(reply.GetEncoding())}
	for _, value := range append(reply.GetValues(), []byte{99}) {
		b.Add(value)
	}
	bytes, err := b.Frame()
	if err != nil {
		t.Fatal(err)
	}
	x := newExecutor(t, recordApp(), &pb.Stage{Id: "s0", Nodes: []*pb.Node{{Path: "1/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 5}}})
	letters := collect(t, run(t, x, bytes)).letters
	if len(letters) != 1 || letters[0].GetCode() != "C505" || letters[0].GetEncoding() != 17 {
		t.Errorf("dead letters are %v", letters)
	}
	counts := x.Counts()
	if len(counts) != 1 || counts[0].GetMessagesIn() != 4 || counts[0].GetMessagesOut() != 3 {
		t.Errorf("counts are %v", counts)
	}
}

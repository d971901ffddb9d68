package stage_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

const buckets = 8

var splitStage = &pb.Stage{Id: "s0", BucketCount: buckets, FrameBytes: 1 << 20, Nodes: []*pb.Node{
	{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE, Port: 0},
	{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION_MULTI, Inputs: []string{"0/sources/0"}},
	{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 1},
}}

var countStage = &pb.Stage{Id: "s1", BucketCount: buckets, FrameBytes: 1 << 20, Nodes: []*pb.Node{
	{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_STATE_COMPUTATION, Port: 1, State: "totals", StatePort: 1},
	{Path: "0/sinks/0", Kind: pb.NodeKind_NODE_KIND_SINK, Inputs: []string{"0/steps/1"}, Port: 2},
}}

// wordCount declares the word count.
func wordCount(t testing.TB) *declaration.Application {
	t.Helper()
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	return declared(t, app)
}

func declared(t testing.TB, app *application.Application) *declaration.Application {
	t.Helper()
	result, ok := declaration.Lookup(app.ToJson())
	if !ok || len(result.Found) > 0 {
		t.Fatalf("the application is wrong: %v", result.Found)
	}
	return result.Application
}

func newExecutor(t testing.TB, app *declaration.Application, description *pb.Stage) *stage.Executor {
	t.Helper()
	x, err := stage.New(app, description)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// framed makes a journal frame of texts.
func framed(t testing.TB, texts ...string) []byte {
	t.Helper()
	var values []byte
	for _, text := range texts {
		values = append(binary.BigEndian.AppendUint32(values, uint32(len(text))), text...)
	}
	bytes, err := frame.WriteFramed(0, 100, 1234, len(texts), values)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// manyLines makes a frame of about 1 MiB with messages of eight words. It also returns the number of messages.
func manyLines(t testing.TB) ([]byte, int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var lines []string
	for size := 0; size < 1<<20; size += len(lines[len(lines)-1]) + 4 {
		words := make([]string, 8)
		for i := range words {
			words[i] = fmt.Sprintf("%c%s", 'a'+random.IntN(26), strings.Repeat("e", random.IntN(8)))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return framed(t, lines...), len(lines)
}

// collected has the output of a stage: frames by bucket, values of the sink, and dead letters.
type collected struct {
	buckets map[int32][][]byte
	sink    []string
	letters []*pb.DeadLetter
}

func collect(t testing.TB, outputs []stage.OutputFrame) *collected {
	t.Helper()
	c := &collected{buckets: map[int32][][]byte{}}
	for _, output := range outputs {
		switch output.Port {
		case frame.DeadLetterPort:
			for _, value := range values(t, output.Frame) {
				c.letters = append(c.letters, letterOf(t, value))
			}
		case 2:
			for _, value := range values(t, output.Frame) {
				c.sink = append(c.sink, string(value))
			}
		default:
			c.buckets[output.Bucket] = append(c.buckets[output.Bucket], output.Frame)
		}
	}
	return c
}

func values(t testing.TB, bytes []byte) (all [][]byte) {
	t.Helper()
	var f frame.Frame
	if _, err := f.Read(bytes); err != nil {
		t.Fatal(err)
	}
	data := f.Values
	for i := range f.Count {
		length := f.Lengths.At(i)
		all, data = append(all, data[:length]), data[length:]
	}
	return all
}

func run(t testing.TB, x *stage.Executor, frames []byte) []stage.OutputFrame {
	t.Helper()
	var outputs []stage.OutputFrame
	err := x.Run(frames, func(port uint16, bucket int32, bytes []byte) error {
		outputs = append(outputs, stage.OutputFrame{Port: port, Bucket: bucket, Frame: bytes})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return outputs
}

func BenchmarkSplit(b *testing.B) {
	for _, own := range []bool{true, false} {
		b.Run(fmt.Sprintf("own=%v", own), func(b *testing.B) {
			defer example.SetSerialize(own)()
			x := newExecutor(b, wordCount(b), splitStage)
			lines, count := manyLines(b)
			b.ReportAllocs()
			for b.Loop() {
				if err := x.Run(lines, func(uint16, int32, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			perWord(b, count)
		})
	}
}

func BenchmarkCount(b *testing.B) {
	for _, own := range []bool{true, false} {
		b.Run(fmt.Sprintf("own=%v", own), func(b *testing.B) {
			defer example.SetSerialize(own)()
			app := wordCount(b)
			lines, count := manyLines(b)
			keyed := collect(b, run(b, newExecutor(b, app, splitStage), lines)).buckets
			x := newExecutor(b, app, countStage)
			b.ReportAllocs()
			for b.Loop() {
				for _, frames := range keyed {
					call := x.NewCall(state.NewBucket(), nil)
					if err := call.Run(frames...); err != nil {
						b.Fatal(err)
					}
					if _, _, _, err := call.Finish(false); err != nil {
						b.Fatal(err)
					}
				}
			}
			perWord(b, count)
		})
	}
}

func perWord(b *testing.B, messages int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*messages*8), "ns/word")
}

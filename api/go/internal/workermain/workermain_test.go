package workermain_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
	"wallarooapi/stream"
	"wallarooapi/worker"
)

// TestMain makes the test binary a user program if a test has started it as one.
func TestMain(m *testing.M) {
	switch os.Getenv("AS_PROGRAM") {
	case "new":
		worker.Main(setup)
	case "library":
		worker.Main(func([]string) *stream.Library {
			library := stream.NewLibrary()
			stream.OfferFlatMap(library, "split", func(_ context.Context, text string) ([]string, error) { return strings.Fields(text), nil }, "string", "string")
			return library
		})
	case "user":
		worker.MainJSON(func() string {
			app := application.MakeApplication("User")
			app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
				To(wa.OtherProgram("splitter", "./split").ComputationMulti("split", "string", "string")).
				ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
			return app.ToJson()
		})
	case "tutorial":
		worker.MainJSON(func() string { return setup(nil).ToJson() })
	case "garbage":
		worker.MainJSON(func() string { return "no topology" })
	}
	os.Exit(m.Run())
}

func setup(args []string) *application.Application {
	if len(args) > 0 && args[0] == "--panic" {
		var none *application.Application
		none.NewPipeline("p", nil)
	}
	if len(args) > 0 && args[0] == "--nil" {
		return nil
	}
	app := application.MakeApplication("Words")
	if len(args) > 0 && args[0] == "--wrong" {
		return app
	}
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	return app
}

// program prepares a command that runs the test binary as a program.
func program(kind string, variables ...string) *exec.Cmd {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), append(variables, "AS_PROGRAM="+kind, "GORACE=atexit_sleep_ms=0")...)
	return command
}

// emitted runs a program in emit mode and returns the content of the file that it wrote.
func emitted(t *testing.T, kind, args string) (result struct {
	Topology    map[string]any
	Library     map[string]any
	Programs    map[string]string
	Diagnostics []struct{ Code, Message, Fix, Traceback, File string }
}) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "emit.json")
	out, err := program(kind, "WALLAROO_MODE=emit", "WALLAROO_EMIT_FILE="+path, "WALLAROO_ARGS="+args).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestEmit(t *testing.T) {
	first, second := emitted(t, "new", `["--in","h:1"]`), emitted(t, "tutorial", `["--in","h:1"]`)
	for _, result := range []map[string]any{first.Topology, second.Topology} {
		entry := result["workers"].([]any)[0].(map[string]any)
		if args := entry["args"].([]any); len(args) != 2 || args[0] != "--in" || entry["language"] != "go" {
			t.Errorf("the worker is %v", entry)
		}
		if hash := entry["code_hash"].(string); !strings.HasPrefix(hash, "sha256:") || len(hash) != 71 {
			t.Errorf("the code hash is %s", hash)
		}
	}
}

func TestEmitOfPrograms(t *testing.T) {
	library := emitted(t, "library", "[]")
	entry, components := library.Library["worker"].(map[string]any), library.Library["components"].([]any)
	// Of {"components": [{"name": "split", "kind": "computation_multi", "input": "string", "output": "string"}]} in
	// canonical form.
	const hash = "sha256:75db5888771d1abda6a11a12ec8cdf69b30dda72566688958f4bb0c12d31433c"
	if len(components) != 1 || library.Topology != nil || entry["name"] != "main" || entry["interface_hash"] != hash {
		t.Errorf("the library is %v", library.Library)
	}
	if user := emitted(t, "user", "[]"); user.Topology == nil || user.Programs["splitter"] != "./split" {
		t.Errorf("programs are %v", user.Programs)
	}
}

func TestEmitSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ kind, args, code, message string }{
		{"new", `["--wrong"]`, "T204", `application "Words" has no sink`},
		{"new", `["--panic"]`, "T217", "setup failed; panic: runtime error: invalid memory address"},
		{"new", `["--nil"]`, "T201", `setup gives no application; it returned "nil"`},
		{"new", `{"no": "array"}`, "R716", "WALLAROO_ARGS is not usable; it is not a JSON array"},
		{"garbage", `[]`, "T201", `ApplicationSetup gives no application; it returned "no topology"`},
	} {
		found := emitted(t, c.kind, c.args).Diagnostics
		if len(found) != 1 || found[0].Code != c.code || !strings.Contains(found[0].Message, c.message) || found[0].Fix == "" {
			t.Errorf("%s %s: %+v", c.kind, c.args, found)
		}
	}
}

func TestRunByHand(t *testing.T) {
	command := program("new")
	out, err := command.CombinedOutput()
	if err == nil || command.ProcessState.ExitCode() != 2 || !strings.HasPrefix(string(out), "W412 this program is a worker;") {
		t.Errorf("status %d: %s", command.ProcessState.ExitCode(), out)
	}
}

func TestASetupThatFailsLeavesFailureFile(t *testing.T) {
	directory := t.TempDir()
	command := program("new", "WALLAROO_MODE=worker", "WALLAROO_WORKER_DIR="+directory, `WALLAROO_ARGS=["--wrong"]`)
	out, _ := command.CombinedOutput()
	content, err := os.ReadFile(filepath.Join(directory, "failure.json"))
	if command.ProcessState.ExitCode() != 3 || err != nil || !strings.Contains(string(content), `"T204"`) {
		t.Errorf("status %d, %v: %s%s", command.ProcessState.ExitCode(), err, out, content)
	}
}

// TestAWorkerWithoutADirectory: a worker without WALLAROO_WORKER_DIR must not write into the current directory.
func TestAWorkerWithoutADirectory(t *testing.T) {
	for _, args := range []string{`["--wrong"]`, "[]"} {
		command := program("new", "WALLAROO_MODE=worker", "WALLAROO_WORKER_DIR=", "WALLAROO_ARGS="+args)
		command.Dir = t.TempDir()
		out, _ := command.CombinedOutput()
		files, err := os.ReadDir(command.Dir)
		if command.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "WALLAROO_WORKER_DIR is not set") || len(files) > 0 {
			t.Errorf("%s: status %d, files %v, %v: %s", args, command.ProcessState.ExitCode(), files, err, out)
		}
	}
}

// started starts a worker, which runs until the test ends, and returns its process and a connection to it.
func started(t *testing.T) (*exec.Cmd, *grpc.ClientConn) {
	t.Helper()
	directory := t.TempDir()
	command := program("new", "WALLAROO_MODE=worker", "WALLAROO_WORKER_DIR="+directory, "WALLAROO_ARGS=[]", "WALLAROO_STATE_CACHE_BYTES=1000000")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			t.Log(lines.Text())
		}
	}()
	connection, err := grpc.NewClient("unix:"+filepath.Join(directory, "worker.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		connection.Close()
		if command.ProcessState == nil {
			command.Process.Kill()
			command.Wait()
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	reply, err := healthpb.NewHealthClient(connection).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("health: %v, %v", reply, err)
	}
	return command, connection
}

// invoked calls a method of the worker protocol with one request and one reply.
func invoked[Reply any](ctx context.Context, connection *grpc.ClientConn, method string, request any) (*Reply, error) {
	reply := new(Reply)
	return reply, connection.Invoke(ctx, "/wallaroo.worker.v1.Worker/"+method, request, reply)
}

// processing opens a stream of calls to the method Process.
func processing(t *testing.T, ctx context.Context, connection *grpc.ClientConn) *grpc.GenericClientStream[pb.Request, pb.Reply] {
	t.Helper()
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/wallaroo.worker.v1.Worker/Process")
	if err != nil {
		t.Fatal(err)
	}
	return &grpc.GenericClientStream[pb.Request, pb.Reply]{ClientStream: stream}
}

func TestAWorkerLives(t *testing.T) {
	command, connection := started(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	reply, err := invoked[pb.InitReply](ctx, connection, "Init", &pb.InitRequest{ProtocolMin: 1, ProtocolMax: 9, Capabilities: []string{"of the future"}})
	if err != nil || reply.GetFailure() != nil || reply.GetLanguage() != "go" || len(reply.GetEndpoints()) != 1 || reply.GetProcessId() != uint32(command.Process.Pid) {
		t.Errorf("init: %v, %v", reply, err)
	}
	reply, err = invoked[pb.InitReply](ctx, connection, "Init", &pb.InitRequest{ProtocolMin: 2, ProtocolMax: 9})
	if err != nil || reply.GetFailure().GetCode() != "W416" {
		t.Errorf("init: %v, %v", reply, err)
	}
	reply, err = invoked[pb.InitReply](ctx, connection, "Init", &pb.InitRequest{ProtocolMin: 1, ProtocolMax: 1, InterfaceHash: "sha256:other"})
	if err != nil || reply.GetFailure().GetCode() != "W403" {
		t.Errorf("init: %v, %v", reply, err)
	}
}

func TestSIGTERMDoesNotWaitForAStreamWithoutACall(t *testing.T) {
	command, connection := started(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stream := processing(t, ctx, connection)
	opening := &pb.Opening{Stage: &pb.Stage{Id: "s0", Nodes: []*pb.Node{{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE}}}}
	if err := stream.Send(&pb.Request{Kind: &pb.Request_Opening{Opening: opening}}); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.Request{Kind: &pb.Request_Data{Data: &pb.Data{}}}); err != nil {
		t.Fatal(err)
	}
	if reply, err := stream.Recv(); err != nil || reply.GetDone() == nil {
		t.Fatalf("%v, %v", reply, err)
	}
	begun := time.Now()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the worker ends") {
		t.Errorf("the stream ended with %v", err)
	}
	// Calls in flight would have three seconds.
	if err := command.Wait(); err != nil || time.Since(begun) > 2500*time.Millisecond {
		t.Errorf("ended with %v after %v", err, time.Since(begun))
	}
}

func TestSplitFrames(t *testing.T) {
	_, connection := started(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	message := func(size uint32) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), make([]byte, size)...)
	}
	for _, c := range []struct {
		data    []byte
		lengths []uint32
		wanted  uint64
	}{
		{append(message(0), message(9)...), []uint32{4, 13}, 0},
		{append(message(1), message(9)[:6]...), []uint32{5}, 13},
		{message(3)[:2], nil, 0},
		{message(101), nil, 105},
		{nil, nil, 0},
	} {
		reply, err := invoked[pb.SplitReply](ctx, connection, "SplitFrames", &pb.SplitRequest{Path: "0/sources/0", Data: c.data, MaxMessageBytes: 100})
		if err != nil || len(reply.GetLengths()) != len(c.lengths) || reply.GetWantedBytes() != c.wanted || reply.GetFailure() != nil {
			t.Errorf("%x: %v, %v", c.data, reply, err)
		}
	}
	reply, err := invoked[pb.SplitReply](ctx, connection, "SplitFrames", &pb.SplitRequest{Path: "9/sources/0"})
	if err != nil || reply.GetFailure().GetCode() != "W403" {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestProcessAnswersInOrder(t *testing.T) {
	_, connection := started(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stream := processing(t, ctx, connection)
	opening := &pb.Opening{Application: "a", Query: "q", Stage: &pb.Stage{Id: "s0", BucketCount: 4, Nodes: []*pb.Node{
		{Path: "0/sources/0", Kind: pb.NodeKind_NODE_KIND_SOURCE},
		{Path: "0/steps/0", Kind: pb.NodeKind_NODE_KIND_COMPUTATION_MULTI, Inputs: []string{"0/sources/0"}},
		{Path: "0/steps/1", Kind: pb.NodeKind_NODE_KIND_KEY, Inputs: []string{"0/steps/0"}, Port: 1},
	}}}
	send := func(request *pb.Request) {
		t.Helper()
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
	}
	send(&pb.Request{Kind: &pb.Request_Opening{Opening: opening}})
	data, err := frame.WriteFramed(0, 0, 0, 1, append(binary.BigEndian.AppendUint32(nil, 3), "a b"...))
	if err != nil {
		t.Fatal(err)
	}
	for index := range uint64(3) {
		send(&pb.Request{Kind: &pb.Request_Data{Data: &pb.Data{Index: index, Frames: data}}})
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	done := uint64(0)
	for {
		reply, err := stream.Recv()
		if err != nil {
			break
		}
		if reply.GetFailure() != nil {
			t.Fatal(reply.GetFailure())
		}
		if reply.GetDone() != nil && reply.GetDone().GetIndex() == done {
			done++
		}
	}
	if done != 3 {
		t.Errorf("%d of 3 were done", done)
	}
}

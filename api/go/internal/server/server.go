// Package server implements the worker protocol, which topology-schema/worker.proto and SPECIFICATION.md describe.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/fault"
	"wallarooapi/internal/flight"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	"wallarooapi/internal/topology"
	"wallarooapi/internal/usercode"
	pb "wallarooapi/internal/workerpb"
)

const (
	messageBytes = frame.MaxBytes + 1<<20
	windowBytes  = 16 << 20
	bufferBytes  = 1 << 18
)

// Host has the methods that answer the calls of the runtime, for one application.
type Host struct {
	application   *declaration.Application
	own           *declaration.Document
	endpoint      string
	sources       map[string]*declaration.Source
	cache         *state.Cache
	checksPersist bool
	maxStateBytes int
	users         sync.RWMutex // read-locked while user code runs, write-locked by a call that must run alone
	work          *work
}

// Server is the gRPC server of a worker.
type Server struct {
	*grpc.Server
	work *work
}

// New makes the gRPC server of an application. own is the document of the program, and endpoint is the gRPC
// target at which the server listens. cacheBytes limits the state cache, and stateBytes the state of one key.
func New(application *declaration.Application, own *declaration.Document, endpoint string, cacheBytes int64, stateBytes int) *Server {
	w := &Host{
		application: application, own: own, endpoint: endpoint,
		sources: application.Parts().Sources, cache: state.NewCache(cacheBytes),
		checksPersist: os.Getenv("WALLAROO_CHECK_PERSIST") == "1", maxStateBytes: stateBytes, work: newWork(),
	}
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(messageBytes), grpc.MaxSendMsgSize(messageBytes),
		grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(windowBytes),
		grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes),
		grpc.ChainStreamInterceptor(traced(application.Name), w.work.stream),
	)
	server.RegisterService(&service, w)
	healthpb.RegisterHealthServer(server, health.NewServer())
	return &Server{server, w.work}
}

// stopTime is how long calls may take to end after their context has ended.
const stopTime = 500 * time.Millisecond

// End refuses new calls, waits up to grace for running calls, and stops the server.
func (s *Server) End(grace time.Duration) {
	s.work.end()
	if !endsWithin(grace, s.GracefulStop) {
		endsWithin(stopTime, s.Stop) // Stop does not return if user code does not return
	}
}

// endsWithin calls the function end in a goroutine, and reports whether end returns within a time limit.
func endsWithin(limit time.Duration, end func()) bool {
	ended := make(chan struct{})
	go func() {
		end()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// Init answers the handshake of the runtime.
func (w *Host) Init(_ context.Context, request *pb.InitRequest) (*pb.InitReply, error) {
	own := w.own
	reply := &pb.InitReply{
		ProtocolMin:   protocolMin,
		ProtocolMax:   declaration.Protocol,
		Capabilities:  capabilities,
		Language:      declaration.Language,
		InterfaceHash: own.InterfaceHash,
		Endpoints:     []string{w.endpoint},
		ProcessId:     uint32(os.Getpid()),
	}
	low, high := request.GetProtocolMin(), request.GetProtocolMax()
	if commonVersion(protocolMin, declaration.Protocol, low, high) == 0 {
		reply.Failure = failureOf(diagnostic.Of("W416", "worker", topology.WorkerName, "lack", fmt.Sprintf(
			"speaks protocol %s; the runtime speaks %s", shownVersions(protocolMin, declaration.Protocol), shownVersions(low, high))))
	} else if asked := request.GetInterfaceHash(); asked != "" && asked != own.InterfaceHash {
		reply.Failure = failureOf(diagnostic.Of("W403", "worker", topology.WorkerName,
			"reason", fmt.Sprintf("its interface hash is %s; the topology has %s", own.InterfaceHash, asked)))
	}
	return reply, nil
}

// SplitFrames cuts bytes into messages for a source with a framing that only the decoder knows.
func (w *Host) SplitFrames(_ context.Context, request *pb.SplitRequest) (*pb.SplitReply, error) {
	source, ok := w.sources[request.GetPath()]
	if !ok || source.Framed == nil {
		return &pb.SplitReply{Failure: notHosted(request.GetPath())}, nil
	}
	limit := request.GetMaxMessageBytes()
	if limit == 0 {
		limit = topology.MaxMessageBytes
	}
	lengths, wanted, err := stage.Split(source, request.GetData(), limit)
	reply := &pb.SplitReply{Lengths: lengths, WantedBytes: wanted}
	if err != nil {
		reply.Failure = failure(err)
	}
	return reply, nil
}

// Generate makes the next messages of a generator source.
func (w *Host) Generate(_ context.Context, request *pb.GenerateRequest) (*pb.GenerateReply, error) {
	source, ok := w.sources[request.GetPath()]
	if !ok || source.Generator == nil {
		return &pb.GenerateReply{Failure: notHosted(request.GetPath())}, nil
	}
	w.users.RLock()
	defer w.users.RUnlock()
	reply := &pb.GenerateReply{}
	if err := stage.Generate(source, request, reply); err != nil {
		reply.Failure = failure(err)
	}
	return reply, nil
}

// ShowState returns the states at the end of a state log for display.
func (w *Host) ShowState(_ context.Context, request *pb.ShowStateRequest) (reply *pb.ShowStateReply, err error) {
	w.users.RLock()
	defer w.users.RUnlock()
	reply = &pb.ShowStateReply{}
	if err := w.showState(request, reply); err != nil {
		reply = &pb.ShowStateReply{Failure: failure(err)}
	}
	return reply, nil
}

func (w *Host) showState(request *pb.ShowStateRequest, reply *pb.ShowStateReply) (err error) {
	defer guard(&err)
	x, record, err := w.open(usercode.Context(), &pb.Opening{Stage: request.GetStage()})
	if err != nil {
		return err
	}
	defer closing(record, &err)
	reply.States, err = x.Show(request.GetEntries())
	return err
}

// process answers a stream of calls for a stage without state steps.
func (w *Host) process(s stream) (err error) {
	defer guard(&err)
	first, err := s.Recv()
	if err != nil {
		return broken(err)
	}
	x, record, err := w.open(within(s), first.GetOpening())
	if err != nil {
		return err
	}
	defer closing(record, &err)
	for {
		request, err := s.Recv()
		if err != nil {
			return broken(err)
		}
		data := request.GetData()
		if data == nil {
			return protocol("a second opening")
		}
		if err := w.work.do(func() error { return w.call(s, x, record, data) }); err != nil {
			return err
		}
	}
}

// call processes the frames of one request and sends the results.
func (w *Host) call(s stream, x *stage.Executor, record *flight.File, data *pb.Data) error {
	fault.BeforeCompute.Reach()
	turn := w.turn(s.Context(), record, data.GetAlone())
	x.Begin(data.GetIndex(), data.GetSkips())
	err := turn.run(func() error {
		return x.Run(data.GetFrames(), func(port uint16, bucket int32, bytes []byte) error {
			reply := &pb.Reply{Kind: &pb.Reply_Output{Output: &pb.Output{
				Index: data.GetIndex(), Port: uint32(port), Bucket: bucket, Frame: bytes,
			}}}
			return turn.pause(func() error { return send(s.Send(reply)) })
		})
	})
	if err != nil {
		return err
	}
	fault.AfterCompute.Reach()
	done := &pb.Done{Index: data.GetIndex(), Counts: x.Counts()}
	if err := s.Send(&pb.Reply{Kind: &pb.Reply_Done{Done: done}}); err != nil {
		return broken(err)
	}
	fault.AfterReply.Reach()
	return nil
}

// open prepares a stream of calls from its first request, the opening. It compiles the stage, and opens the record of
// the message in flight, which the caller must close. ctx is the context that user functions get.
func (w *Host) open(ctx context.Context, opening *pb.Opening) (*stage.Executor, *flight.File, error) {
	if opening.GetStage() == nil {
		return nil, nil, protocol("the stream does not begin with an opening")
	}
	x, err := stage.NewWithin(ctx, w.application, opening.GetStage())
	if failed := (*stage.Failure)(nil); errors.As(err, &failed) {
		failed.Reason = fmt.Sprintf("stage %q: %s", opening.GetStage().GetId(), failed.Reason)
	}
	if err != nil {
		return nil, nil, err
	}
	record, err := flight.Open(opening.GetInFlight())
	if err != nil {
		return nil, nil, protocol("an in-flight file that cannot be mapped; " + err.Error())
	}
	x.Watch(record)
	x.LimitStates(w.maxStateBytes)
	if w.checksPersist {
		x.CheckPersist()
	}
	return x, record, nil
}

// closing is deferred to close the record of the message in flight at the end of a stream.
func closing(record *flight.File, err *error) {
	if failed := record.Close(); *err == nil {
		*err = failed
	}
}

// errBroken is an error of the connection: the client is gone, so no failure can be sent to it.
type errBroken struct{ cause error }

func (e errBroken) Error() string { return e.cause.Error() }

func (e errBroken) Unwrap() error { return e.cause }

// broken converts an error of a receive: to nil if the client has ended the stream properly, and otherwise to
// errBroken.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return errBroken{err}
}

// send converts an error of a send to errBroken.
func send(err error) error {
	if err != nil {
		return errBroken{err}
	}
	return nil
}

// protocol returns the failure (W410) for requests that the worker protocol does not allow.
func protocol(reason string) error {
	d := diagnostic.Of("W410", "worker", topology.WorkerName, "reason", "the client sent "+reason)
	return &stage.Failure{Code: d.Code, Reason: d.Message}
}

// notHosted returns the failure for a source that this program does not have.
func notHosted(path string) *pb.Failure {
	return failureOf(diagnostic.Of("W403", "worker", topology.WorkerName, "reason", fmt.Sprintf("it does not host the source %q", path)))
}

// guard is deferred to convert a panic of the SDK itself into a failure. Panics of user code are handled earlier.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = &stage.Failure{Code: "I901", Reason: fmt.Sprintf("panic: %v", r), Traceback: string(debug.Stack())}
	}
}

// failure converts an error to the form of the protocol. An error without a code is a bug of the SDK (I901).
func failure(err error) *pb.Failure {
	failed := &stage.Failure{Code: "I901", Reason: err.Error()}
	errors.As(err, &failed)
	// Only a bug of the SDK (I901) may disappear in a retry.
	return &pb.Failure{Code: failed.Code, Message: failed.Reason, Traceback: failed.Traceback, Retriable: failed.Code == "I901"}
}

// failureOf converts a diagnostic to the form of the protocol.
func failureOf(d diagnostic.Diagnostic) *pb.Failure {
	return &pb.Failure{Code: d.Code, Message: d.Message, Fix: d.Fix, Pointer: d.Pointer, File: d.File, Line: uint32(d.Line)}
}

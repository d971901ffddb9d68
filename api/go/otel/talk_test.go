package otel

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"

	pb "wallarooapi/internal/workerpb"
)

// talk is a stream of either kind, Process or ProcessState, on the side of the runtime.
type talk struct {
	open, close, awaitEnd, awaitFailure func()
	send                                func(index uint64, frames []byte)
	await                               func(index uint64)
}

// both describes a gRPC call in which both sides send any number of messages.
var both = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// talking begins a stream of a kind.
func talking(t *testing.T, connection *grpc.ClientConn, ctx context.Context, hasState bool) *talk {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	method, stage := "Process", mapStage
	if hasState {
		method, stage = "ProcessState", stateStage
	}
	raw, err := connection.NewStream(ctx, both, "/wallaroo.worker.v1.Worker/"+method)
	check(err)
	s := &grpc.GenericClientStream[pb.Request, pb.Reply]{ClientStream: raw}
	return &talk{
		open: func() {
			check(s.Send(&pb.Request{Kind: &pb.Request_Opening{Opening: &pb.Opening{Stage: stage}}}))
		},
		close: func() { check(s.CloseSend()) },
		send: func(index uint64, frames []byte) {
			request := &pb.Request{Kind: &pb.Request_Data{Data: &pb.Data{Index: index, Frames: frames}}}
			if hasState {
				request.Kind = &pb.Request_Bucket{Bucket: &pb.Bucket{Index: index, Frames: frames}}
			}
			check(s.Send(request))
		},
		await: func(index uint64) {
			for isDone := false; !isDone; {
				r, err := s.Recv()
				isDone = r.GetDone() != nil
				if err != nil || r.GetFailure() != nil || isDone && r.GetDone().GetIndex() != index {
					t.Errorf("call %d: %v, %v", index, r, err)
					return
				}
			}
		},
		awaitEnd: func() {
			if r, err := s.Recv(); err != io.EOF {
				t.Errorf("it ends with %v, %v", r, err)
			}
		},
		awaitFailure: func() {
			if r, err := s.Recv(); err != nil || r.GetFailure().GetCode() != "W410" {
				t.Errorf("it fails with %v, %v", r, err)
			}
		},
	}
}

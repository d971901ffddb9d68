package otel

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"

	pb "wallarooapi/internal/workerpb"
)

// talk is a stream of either kind, as the runtime sees it.
type talk struct {
	open, close, awaitEnd, awaitFailure func()
	send                                func(index uint64, frames []byte)
	await                               func(index uint64)
}

// both describes a call in which both sides send any number of messages.
var both = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

type reply interface{ GetFailure() *pb.Failure }

// talking begins a stream.
func talking(t *testing.T, connection *grpc.ClientConn, ctx context.Context, hasState bool) *talk {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	if hasState {
		raw, err := connection.NewStream(ctx, both, "/wallaroo.worker.v1.Worker/ProcessState")
		check(err)
		s := &grpc.GenericClientStream[pb.Request, pb.Reply]{ClientStream: raw}
		begin := &pb.Request{Kind: &pb.Request_Opening{Opening: &pb.Opening{Stage: stateStage}}}
		made := common(t, func() (reply, bool, uint64, error) {
			r, err := s.Recv()
			return r, r.GetDone() != nil, r.GetDone().GetIndex(), err
		})
		made.open, made.close = func() { check(s.Send(begin)) }, func() { check(s.CloseSend()) }
		made.send = func(index uint64, frames []byte) {
			check(s.Send(&pb.Request{Kind: &pb.Request_Bucket{Bucket: &pb.Bucket{Index: index, Frames: frames}}}))
		}
		return made
	}
	raw, err := connection.NewStream(ctx, both, "/wallaroo.worker.v1.Worker/Process")
	check(err)
	s := &grpc.GenericClientStream[pb.Request, pb.Reply]{ClientStream: raw}
	begin := &pb.Request{Kind: &pb.Request_Opening{Opening: &pb.Opening{Stage: mapStage}}}
	made := common(t, func() (reply, bool, uint64, error) {
		r, err := s.Recv()
		return r, r.GetDone() != nil, r.GetDone().GetIndex(), err
	})
	made.open, made.close = func() { check(s.Send(begin)) }, func() { check(s.CloseSend()) }
	made.send = func(index uint64, frames []byte) {
		check(s.Send(&pb.Request{Kind: &pb.Request_Data{Data: &pb.Data{Index: index, Frames: frames}}}))
	}
	return made
}

// common has what does not depend on the kind: it receives a reply, whether it ends a call and which, and an error.
func common(t *testing.T, receive func() (reply, bool, uint64, error)) *talk {
	return &talk{
		await: func(index uint64) {
			for isDone, done := false, uint64(0); !isDone; {
				var r reply
				var err error
				if r, isDone, done, err = receive(); err != nil || r.GetFailure() != nil || isDone && done != index {
					t.Errorf("call %d: %v, %v", index, r, err)
					return
				}
			}
		},
		awaitEnd: func() {
			if r, _, _, err := receive(); err != io.EOF {
				t.Errorf("it ends with %v, %v", r, err)
			}
		},
		awaitFailure: func() {
			if r, _, _, err := receive(); err != nil || r.GetFailure().GetCode() != "W410" {
				t.Errorf("it fails with %v, %v", r, err)
			}
		},
	}
}

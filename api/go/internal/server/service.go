package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	pb "wallarooapi/internal/workerpb"
)

// service connects the methods of the service in worker.proto with those of Host.
var service = grpc.ServiceDesc{
	ServiceName: "wallaroo.worker.v1.Worker",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("Init", (*Host).Init), unary("SplitFrames", (*Host).SplitFrames),
		unary("Generate", (*Host).Generate), unary("ShowState", (*Host).ShowState),
	},
	Streams: []grpc.StreamDesc{
		streaming("Process", (*Host).process), streaming("ProcessState", (*Host).processState),
	},
}

// unary describes a method with one request and one reply.
func unary[Request, Reply any](name string, call func(*Host, context.Context, *Request) (*Reply, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(host any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		return call(host.(*Host), ctx, request)
	}}
}

// stream is a stream of requests for calls of a stage.
type stream = *grpc.GenericServerStream[pb.Request, pb.Reply]

// streaming describes a method that runs a stage, with a stream of requests and a stream of replies. If the function
// call fails, the last reply is its failure, unless the client is gone.
func streaming(name string, call func(*Host, stream) error) grpc.StreamDesc {
	handler := func(host any, s grpc.ServerStream) error {
		opened := &grpc.GenericServerStream[pb.Request, pb.Reply]{ServerStream: s}
		err := call(host.(*Host), opened)
		if gone := (errBroken{}); err == nil || errors.As(err, &gone) {
			return err
		}
		return opened.Send(&pb.Reply{Kind: &pb.Reply_Failure{Failure: failure(err)}})
	}
	return grpc.StreamDesc{StreamName: name, Handler: handler, ServerStreams: true, ClientStreams: true}
}

package server

import (
	"context"

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
		stream("Process", func(w *Host, s grpc.ServerStream) error {
			return w.Process(&grpc.GenericServerStream[pb.ProcessRequest, pb.ProcessReply]{ServerStream: s})
		}),
		stream("ProcessState", func(w *Host, s grpc.ServerStream) error {
			return w.ProcessState(&grpc.GenericServerStream[pb.StateRequest, pb.StateReply]{ServerStream: s})
		}),
	},
}

func unary[Request, Reply any](name string, call func(*Host, context.Context, *Request) (*Reply, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(host any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		return call(host.(*Host), ctx, request)
	}}
}

func stream(name string, call func(*Host, grpc.ServerStream) error) grpc.StreamDesc {
	handler := func(host any, s grpc.ServerStream) error { return call(host.(*Host), s) }
	return grpc.StreamDesc{StreamName: name, Handler: handler, ServerStreams: true, ClientStreams: true}
}

package server

import (
	"context"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"wallarooapi/internal/span"
	"wallarooapi/internal/usercode"
	pb "wallarooapi/internal/workerpb"
)

// traced returns an interceptor that makes a tracing span for each stream, if the client sends a trace context and the
// program imports package otel. The span lasts as long as the stream.
func traced(application string) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		header := ""
		if found := metadata.ValueFromIncomingContext(stream.Context(), span.Header); len(found) > 0 {
			header = found[0]
		}
		within, call := span.Begin(usercode.Context(), application, path.Base(info.FullMethod), header)
		if call == nil {
			return handler(service, stream)
		}
		defer call.End()
		err := handler(service, &tracedStream{stream, within, call})
		if err == errEnding {
			call.Fail(status.Convert(errEnding.cause).Message())
		}
		return err
	}
}

// tracedStream is a stream with a tracing span, in which it records a failure that the worker sends.
type tracedStream struct {
	grpc.ServerStream
	within context.Context
	call   span.Call
}

type withinKey struct{}

// Context returns the context of the stream. The function within finds in it the context for user functions, which does
// not end with the stream.
func (s *tracedStream) Context() context.Context {
	return context.WithValue(s.ServerStream.Context(), withinKey{}, s.within)
}

func (s *tracedStream) SendMsg(message any) error {
	if reply, is := message.(interface{ GetFailure() *pb.Failure }); is && reply.GetFailure() != nil {
		s.call.Fail(reply.GetFailure().GetCode() + " " + reply.GetFailure().GetMessage())
	}
	return s.ServerStream.SendMsg(message)
}

// within returns the context for the user functions of a stream.
func within(stream grpc.ServerStream) context.Context {
	if found, is := stream.Context().Value(withinKey{}).(context.Context); is {
		return found
	}
	return usercode.Context()
}

package stage

import (
	"fmt"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	pb "wallarooapi/internal/workerpb"
)

// Generate adds the next messages of a generator source to a reply. They follow the message in the request. If user
// code fails, the messages that are already in the reply are valid.
func Generate(source *declaration.Source, request *pb.GenerateRequest, reply *pb.GenerateReply) error {
	return apart("C501", source.Name, func() error { return generate(source, request, reply) })
}

func generate(source *declaration.Source, request *pb.GenerateRequest, reply *pb.GenerateReply) error {
	encoder := codec.NewEncoder()
	reply.Encoding = uint32(encoder.Encoding())
	next, err := first(source, request)
	if err != nil {
		return err
	}
	for size := 0; ; {
		var message any
		if message, err = generated(source, next); err != nil {
			return err
		}
		if message == nil {
			reply.Ended = true
			return nil
		}
		encoder.Reset()
		value, err := encoder.Append(nil, message)
		if err != nil {
			return newFailure("C504", fmt.Sprintf("%s: %T cannot be serialized; %v; %s", source.Name, message, err, codec.Remedy(err)), codec.StackOf(err))
		}
		if len(value) > maxValueBytes {
			return &Failure{Code: "C525", Reason: tooLarge(source.Name, len(value), 0, smallerFix).Message}
		}
		reply.Values = append(reply.Values, value)
		size += len(value)
		if len(reply.Values) >= int(request.GetMaxCount()) || size >= int(request.GetMaxBytes()) {
			return nil
		}
		next = func() any { return source.Generator.Apply(message) }
	}
}

// first returns the function that makes the first message of a reply. This is the generator's first message, or the one
// that follows the message in the request.
func first(source *declaration.Source, request *pb.GenerateRequest) (func() any, error) {
	if request.GetBegins() {
		return source.Generator.InitialValue, nil
	}
	encoding := byte(request.GetPreviousEncoding())
	if encoding == 0 {
		encoding = codec.NewEncoder().Encoding()
	}
	previous, err := codec.NewDecoder().Decode(encoding, request.GetPrevious())
	if err != nil {
		return nil, newFailure("C505", source.Name+": the message before cannot be read back; "+err.Error(), codec.StackOf(err))
	}
	return func() any { return source.Generator.Apply(previous) }, nil
}

// generated calls the function next, which is code of the generator, and returns its panic as an error.
func generated(source *declaration.Source, next func() any) (message any, err error) {
	defer caughtIn(source.Name, &err)
	return next(), nil
}

package server

import (
	"math/rand/v2"

	"google.golang.org/grpc"

	"wallarooapi/internal/fault"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	pb "wallarooapi/internal/workerpb"
)

type stateStream = grpc.BidiStreamingServer[pb.StateRequest, pb.StateReply]

// ProcessState runs a stage that begins with state.
func (w *Worker) ProcessState(stream stateStream) error {
	return end(w.processState(stream), func(failure *pb.Failure) error {
		return stream.Send(&pb.StateReply{Kind: &pb.StateReply_Failure{Failure: failure}})
	})
}

// conversation is one stream of bucket calls.
type conversation struct {
	stream  stateStream
	cache   *state.Cache
	x       *stage.Executor
	turn    func(alone bool) turn
	owner   state.Owner
	waiting []*pb.Bucket // that arrived while a state log was awaited
}

func (w *Worker) processState(stream stateStream) (err error) {
	defer guard(&err)
	first, err := stream.Recv()
	if err != nil {
		return broken(err)
	}
	opening := first.GetOpening()
	x, record, err := w.open(opening)
	if err != nil {
		return err
	}
	defer closing(record, &err)
	c := &conversation{stream: stream, cache: w.cache, x: x, owner: state.Owner{
		Application: opening.GetApplication(), Query: opening.GetQuery(), Stage: opening.GetStage().GetId(),
	}}
	c.turn = func(alone bool) turn { return w.turn(record, alone) }
	for {
		bucket, err := c.nextBucket()
		if bucket == nil || err != nil {
			return err
		}
		if err := w.work.do(func() error { return c.call(bucket) }); err != nil {
			return err
		}
	}
}

// nextBucket returns the next request of a bucket call, nil at the end of the stream.
func (c *conversation) nextBucket() (*pb.Bucket, error) {
	if len(c.waiting) > 0 {
		bucket := c.waiting[0]
		c.waiting = c.waiting[1:]
		return bucket, nil
	}
	request, err := c.stream.Recv()
	if err != nil {
		return nil, broken(err)
	}
	if request.GetBucket() == nil {
		return nil, protocol("something else where a bucket call belongs")
	}
	return request.GetBucket(), nil
}

// nextLog returns the next request of a state log; bucket calls that were sent before it wait.
func (c *conversation) nextLog() (*pb.StateLog, error) {
	for {
		request, err := c.stream.Recv()
		if err != nil {
			return nil, errBroken{err}
		}
		if log := request.GetLog(); log != nil {
			return log, nil
		}
		if request.GetBucket() == nil {
			return nil, protocol("a second opening")
		}
		c.waiting = append(c.waiting, request.GetBucket())
	}
}

// call runs one bucket call, whose first request is at hand.
func (c *conversation) call(first *pb.Bucket) error {
	index := first.GetIndex()
	turn := c.turn(first.GetAlone())
	fault.BeforeCompute.Reach()
	c.owner.Bucket = first.GetBucket()
	version := state.Version{Counter: first.GetVersion().GetCounter(), Nonce: first.GetVersion().GetNonce()}
	c.x.Careful(first.GetCareful())
	c.x.Begin(index, first.GetSkips())
	bucket, ok := c.cache.Take(c.owner, version)
	if !ok || first.GetCareful() && version != (state.Version{}) {
		var err error
		if bucket, err = c.load(index, version, false, turn); err != nil {
			return err
		}
	}
	run := c.x.NewCall(bucket, func() (bucket *state.Bucket, err error) {
		err = turn.pause(func() error {
			bucket, err = c.load(index, version, true, turn)
			return err
		})
		return bucket, err
	})
	parts, whole, err := c.parts(first)
	if err != nil {
		return err
	}
	if err := turn.run(func() error { return run.Run(parts...) }); err != nil {
		return err
	}
	var outputs []stage.Output
	var changes [][]byte
	err = turn.run(func() (err error) {
		outputs, changes, bucket, err = run.Finish(whole)
		return err
	})
	if err != nil {
		return err
	}
	return c.finish(index, version, whole, outputs, changes, bucket)
}

// parts returns the frames of all requests of a call, and whether one of them wants the whole state.
func (c *conversation) parts(first *pb.Bucket) (parts [][]byte, whole bool, err error) {
	for request := first; ; {
		whole = whole || request.GetWantsSnapshot()
		parts = append(parts, request.GetFrames())
		if !request.GetMore() {
			return parts, whole, nil
		}
		if request, err = c.nextBucket(); err != nil {
			return nil, false, err
		}
		if request == nil || request.GetIndex() != first.GetIndex() {
			return nil, false, protocol("a bucket call without its last part")
		}
	}
}

// finish sends what a call gave.
func (c *conversation) finish(
	index uint64, version state.Version, whole bool, outputs []stage.Output, changes [][]byte, bucket *state.Bucket,
) error {
	fault.AfterCompute.Reach()
	for _, output := range outputs {
		if err := c.send(&pb.StateReply{Kind: &pb.StateReply_Output{Output: &pb.Output{
			Index: index, Port: uint32(output.Port), Bucket: output.Bucket, Frame: output.Frame,
		}}}); err != nil {
			return err
		}
	}
	for _, change := range changes {
		if err := c.send(&pb.StateReply{Kind: &pb.StateReply_Change{Change: &pb.StateChange{
			Index: index, Entries: [][]byte{change},
		}}}); err != nil {
			return err
		}
	}
	bucket.Version = state.Version{Counter: version.Counter + 1, Nonce: nonce()}
	done := &pb.StateDone{
		Index: index, Nonce: bucket.Version.Nonce, Snapshot: whole, Keys: uint64(bucket.Keys()),
		CachedBytes: uint64(bucket.Bytes()), Counts: c.x.Counts(), Visits: c.x.Visited(),
	}
	// The copy is filed before the reply: the client may ask for the new version at once, on another stream.
	c.cache.Put(c.owner, bucket)
	if err := c.send(&pb.StateReply{Kind: &pb.StateReply_Done{Done: done}}); err != nil {
		return err
	}
	fault.AfterReply.Reach()
	return nil
}

// load builds the bucket of a version from its log; states are read when it is the call's turn, as messages are run.
func (c *conversation) load(index uint64, version state.Version, rollback bool, turn turn) (*state.Bucket, error) {
	loader := c.x.NewLoader()
	if version == (state.Version{}) {
		return loader.Bucket(), nil
	}
	need := &pb.NeedState{Index: index, Rollback: rollback}
	if err := c.send(&pb.StateReply{Kind: &pb.StateReply_NeedState{NeedState: need}}); err != nil {
		return nil, err
	}
	for {
		log, err := c.nextLog()
		if err != nil {
			return nil, err
		}
		if log.GetIndex() != index {
			return nil, protocol("the state log of another call")
		}
		for _, entry := range log.GetEntries() {
			if err := turn.run(func() error { return loader.Load(entry) }); err != nil {
				return nil, err
			}
		}
		if !log.GetMore() {
			return loader.Bucket(), loader.End()
		}
	}
}

func (c *conversation) send(reply *pb.StateReply) error { return send(c.stream.Send(reply)) }

// nonce draws a random number that is not 0, which stands for the empty state.
func nonce() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

package server

import (
	"math/rand/v2"

	"wallarooapi/internal/fault"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/state"
	pb "wallarooapi/internal/workerpb"
)

var errUnfinished = protocol("a bucket call without its last part")

// conversation is one stream of requests for bucket calls: each call processes the messages of one bucket.
type conversation struct {
	stream  stream
	cache   *state.Cache
	x       *stage.Executor
	turn    func(alone bool) turn
	owner   state.Owner
	waiting []*pb.Bucket // requests that arrived while a state log was awaited
	open    *openCall    // call that continues with the next request; nil if the next request begins a call
}

// openCall is a bucket call that has begun and not ended.
type openCall struct {
	index   uint64
	version state.Version
	turn    turn
	run     *stage.BucketCall
	whole   bool // the client wants a snapshot of the whole state
}

// processState answers a stream of bucket calls for a stage that begins with state steps.
func (w *Host) processState(s stream) (err error) {
	defer guard(&err)
	first, err := s.Recv()
	if err != nil {
		return broken(err)
	}
	opening := first.GetOpening()
	x, record, err := w.open(within(s), opening)
	if err != nil {
		return err
	}
	defer closing(record, &err)
	c := &conversation{stream: s, cache: w.cache, x: x, owner: state.Owner{
		Application: opening.GetApplication(), Query: opening.GetQuery(), Stage: opening.GetStage().GetId(),
	}}
	c.turn = func(alone bool) turn { return w.turn(s.Context(), record, alone) }
	for {
		bucket, err := c.nextBucket()
		if err == nil && bucket == nil && c.open != nil {
			return errUnfinished
		}
		if bucket == nil || err != nil {
			return err
		}
		if err := w.work.do(func() error { return c.part(bucket) }); err != nil {
			return err
		}
	}
}

// nextBucket returns the next request for a bucket call, or nil at the end of the stream.
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

// nextLog returns the next request with entries of a state log. Requests for later bucket calls may arrive before it,
// and are kept in waiting.
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

// part processes one part of a bucket call. first is the first request of the part. The last request of the part wants
// the outputs so far (a release), or is the last of the call.
func (c *conversation) part(first *pb.Bucket) (err error) {
	fault.BeforeCompute.Reach()
	call := c.open
	if call == nil {
		call, err = c.begin(first)
	} else if first.GetIndex() != call.index {
		err = errUnfinished
	}
	if err != nil {
		return err
	}
	pieces, last, err := c.requests(call, first)
	if err != nil {
		return err
	}
	if err := call.turn.run(func() error { return call.run.Run(pieces...) }); err != nil {
		return err
	}
	if last.GetRelease() {
		c.open = call
		return c.release(call)
	}
	c.open = nil
	return c.finish(call)
}

// begin begins a bucket call with its first request. It takes the states from the cache, or loads them.
func (c *conversation) begin(first *pb.Bucket) (*openCall, error) {
	version := state.Version{Counter: first.GetVersion().GetCounter(), Nonce: first.GetVersion().GetNonce()}
	call := &openCall{index: first.GetIndex(), version: version, turn: c.turn(first.GetAlone())}
	c.owner.Bucket = first.GetBucket()
	c.x.Careful(first.GetCareful())
	c.x.Begin(call.index, first.GetSkips())
	bucket, ok := c.cache.Take(c.owner, version)
	if !ok || first.GetCareful() && version != (state.Version{}) {
		var err error
		if bucket, err = c.load(call, false); err != nil {
			return nil, err
		}
	}
	call.run = c.x.NewCall(bucket, func() (bucket *state.Bucket, err error) {
		err = call.turn.pause(func() error {
			bucket, err = c.load(call, true)
			return err
		})
		return bucket, err
	})
	return call, nil
}

// requests returns the frames of a part's requests, and the last request of the part.
func (c *conversation) requests(call *openCall, first *pb.Bucket) (pieces [][]byte, last *pb.Bucket, err error) {
	for request := first; ; {
		call.whole = call.whole || request.GetWantsSnapshot()
		pieces = append(pieces, request.GetFrames())
		if request.GetRelease() && !request.GetMore() {
			return nil, nil, protocol("a request with release that ends its call")
		}
		if request.GetRelease() || !request.GetMore() {
			return pieces, request, nil
		}
		if request, err = c.nextBucket(); err != nil {
			return nil, nil, err
		}
		if request == nil || request.GetIndex() != call.index {
			return nil, nil, errUnfinished
		}
	}
}

// release sends the outputs of a part before the end of the call, which then continues.
func (c *conversation) release(call *openCall) error {
	if err := c.compute(call, call.run.Release); err != nil {
		return err
	}
	released := &pb.Reply_Released{Released: &pb.Released{Index: call.index}}
	if err := c.send(&pb.Reply{Kind: released}); err != nil {
		return err
	}
	fault.AfterReply.Reach()
	return nil
}

// compute waits for the turn of a call (see turn) and then calls the function give, which computes outputs. It sends
// these outputs to the runtime.
func (c *conversation) compute(call *openCall, give func() ([]stage.OutputFrame, error)) error {
	var outputs []stage.OutputFrame
	err := call.turn.run(func() (err error) {
		outputs, err = give()
		return err
	})
	if err != nil {
		return err
	}
	fault.AfterCompute.Reach()
	for _, output := range outputs {
		if err := c.send(&pb.Reply{Kind: &pb.Reply_Output{Output: &pb.Output{
			Index: call.index, Port: uint32(output.Port), Bucket: output.Bucket, Frame: output.Frame,
		}}}); err != nil {
			return err
		}
	}
	return nil
}

// finish ends a call, and sends the outputs of its last part, the changed states and the counts.
func (c *conversation) finish(call *openCall) error {
	index, version := call.index, call.version
	var changes [][]byte
	var bucket *state.Bucket
	err := c.compute(call, func() (outputs []stage.OutputFrame, err error) {
		outputs, changes, bucket, err = call.run.Finish(call.whole)
		return outputs, err
	})
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := c.send(&pb.Reply{Kind: &pb.Reply_Change{Change: &pb.StateChange{
			Index: index, Entries: [][]byte{change},
		}}}); err != nil {
			return err
		}
	}
	bucket.Version = state.Version{Counter: version.Counter + 1, Nonce: nonce()}
	done := &pb.Done{
		Index: index, Nonce: bucket.Version.Nonce, Snapshot: call.whole, Keys: uint64(bucket.Keys()),
		Counts: c.x.Counts(), Visits: c.x.Visited(),
	}
	// The bucket must be in the cache before the reply, because the client may then request this version at once on
	// another stream.
	c.cache.Put(c.owner, bucket)
	if err := c.send(&pb.Reply{Kind: &pb.Reply_Done{Done: done}}); err != nil {
		return err
	}
	fault.AfterReply.Reach()
	return nil
}

// load requests the state log of a bucket from the client, and makes the states from it. If rollback is set, the
// request says that the worker has discarded its states, because the call must run again.
func (c *conversation) load(call *openCall, rollback bool) (*state.Bucket, error) {
	index, loader := call.index, c.x.NewLoader()
	if call.version == (state.Version{}) {
		return loader.Bucket(), nil
	}
	need := &pb.NeedState{Index: index, Rollback: rollback}
	if err := c.send(&pb.Reply{Kind: &pb.Reply_NeedState{NeedState: need}}); err != nil {
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
			if err := call.turn.run(func() error { return loader.Load(entry) }); err != nil {
				return nil, err
			}
		}
		if !log.GetMore() {
			return loader.Bucket(), loader.End()
		}
	}
}

func (c *conversation) send(reply *pb.Reply) error { return send(c.stream.Send(reply)) }

// nonce returns a random number for a state.Version. It is not 0, the nonce of the version without states.
func nonce() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

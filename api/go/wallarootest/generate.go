package wallarootest

import (
	"wallarooapi/internal/memory"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/topology"
	pb "wallarooapi/internal/workerpb"
)

// generated holds the progress of a generator source: its last message, and whether it has begun and ended.
type generated struct {
	last     []byte
	encoding uint32
	hasBegun bool
	hasEnded bool
}

// Generate makes the next count messages of a generator source and processes them. It makes fewer messages if the
// source ends first. The test fails if the source is not a generator, or if its function fails.
func (a *App) Generate(source string, count int) {
	a.t.Helper()
	a.goesOn("Generate")
	found := a.source(source)
	if found == nil {
		return
	}
	if found.Generator == nil {
		a.t.Fatalf("wallarootest: source %q is not a generator; use Send", source)
		return
	}
	at := a.generated[found.Path]
	if at == nil {
		at = &generated{}
		a.generated[found.Path] = at
	}
	if at.hasEnded || count < 1 {
		return
	}
	reply := &pb.GenerateReply{}
	err := stage.Generate(found, &pb.GenerateRequest{
		Begins: !at.hasBegun, Previous: at.last, PreviousEncoding: at.encoding, MaxCount: uint32(count), MaxBytes: topology.MaxMessageBytes,
	}, reply)
	if err != nil {
		a.t.Fatalf("wallarootest: %v", err)
		return
	}
	at.hasBegun, at.hasEnded, at.encoding = true, reply.GetEnded(), reply.GetEncoding()
	var arrivals []memory.Arrival
	for _, value := range reply.GetValues() {
		at.last = value
		arrivals = append(arrivals, memory.Arrival{Value: value, TimestampMs: a.now.UnixMilli()})
	}
	if len(arrivals) == 0 {
		return
	}
	written, err := a.journal.Write(a.engine.PortOf(found.Path), byte(at.encoding), false, arrivals)
	a.takeWritten(source, written, err)
}

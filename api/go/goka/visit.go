package goka

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// metaMagic is at the beginning of the metadata of visits that VisitAll requests, and not in those of `wallaroo visit`.
var metaMagic = []byte("\x00goka\x00")

const tokenBytes = 26

// visits holds the unfinished visits that this process has requested, by their tokens.
type visits struct {
	mutex sync.Mutex
	open  map[string]*visited
}

// visited is an unfinished visit of this process: one call of VisitAll.
type visited struct {
	meta    any
	mutex   sync.Mutex
	without map[string]bool // keys without a value, for which the visitor did not run
}

// VisitAll calls the visitor with this name for every key of the group's table, at one place in the order of the
// messages. The visitor gets meta as its message. VisitAll waits until the processor runs, and returns when the effects
// of the visit are committed. The visit is in the journal: if this process dies, the next process continues the visit.
// The next process gets meta only if it is a basic value or one that encoding/gob can write.
//
// VisitAll returns [ErrVisitAborted] if the processor ends before the visit, e.g. because a visitor panics. Such a
// visitor panics again in each run until the program is corrected. If ctx ends first, VisitAll returns an error, too.
func (p *Processor) VisitAll(ctx context.Context, name string, meta any) error {
	_, err := p.VisitAllWithStats(ctx, name, meta)
	return err
}

// VisitAllWithStats is VisitAll and also returns the number of keys for which the visitor ran.
func (p *Processor) VisitAllWithStats(ctx context.Context, name string, meta any) (int64, error) {
	switch {
	case p.tested != nil:
		return p.tested.VisitAllWithStats(ctx, name, meta)
	case p.graph.GroupTable() == nil:
		return 0, errors.New("cannot visit values in stateless processor")
	case !p.graph.has(visitor, name):
		return 0, fmt.Errorf("unconfigured visit callback. Did you initialize the processor with DefineGroup(..., Visit(%s, ...), ...)?", name)
	}
	if err := p.WaitForReadyContext(ctx); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrVisitAborted, err)
	}
	if !p.Recovered() {
		return 0, ErrVisitAborted
	}
	token, open, metadata := p.group.visits.begin(meta)
	defer p.group.visits.end(token)
	keys, err := p.visit(ctx, name, metadata)
	if err != nil {
		return 0, err
	}
	open.mutex.Lock()
	defer open.mutex.Unlock()
	return keys - int64(len(open.without)), nil
}

// visit requests a visit from the runtime and waits until it is done.
func (p *Processor) visit(ctx context.Context, name string, metadata []byte) (keys int64, err error) {
	directory, err := os.MkdirTemp("", "wallaroo-visit-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(directory)
	file := filepath.Join(directory, "metadata")
	if err := os.WriteFile(file, metadata, 0o600); err != nil {
		return 0, err
	}
	command, err := runtimeCommand()
	if err != nil {
		return 0, err
	}
	command = append(command, "visit", p.Checkpoint(), name, "--metadata-file", file, "--wait", "--json")
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.context(), cancel)()
	asked := exec.CommandContext(both, command[0], command[1:]...)
	var said bytes.Buffer
	asked.Stderr = &said
	out, err := asked.Output()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case p.context().Err() != nil:
		return 0, ErrVisitAborted
	case err != nil && diagnostic.Reports(said.String(), diagnostic.NoVisit):
		return 0, fmt.Errorf("%w: %s", ErrVisitAborted, bytes.TrimSpace(said.Bytes()))
	case err != nil:
		return 0, fmt.Errorf("`wallaroo visit` failed (%w): %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var done struct{ Keys int64 }
	if err := json.Unmarshal(out, &done); err != nil {
		return 0, fmt.Errorf("`wallaroo visit` said %q: %w", out, err)
	}
	return done.Keys, nil
}

// encoded serializes meta, the argument of a visitor, for the journal. It returns nil if meta is nil or cannot be
// serialized.
func encoded(meta any) []byte {
	if meta == nil {
		return nil
	}
	data, err := codec.NewEncoder().Append(nil, meta)
	if err != nil {
		return nil // this process still has meta in memory
	}
	return append([]byte{codec.NewEncoder().Encoding()}, data...)
}

// begin registers a visit and gives it a token. It returns the metadata that the runtime passes to the visitors. The
// metadata contain the token, so that this process finds the visit again.
func (v *visits) begin(meta any) (token string, open *visited, metadata []byte) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	token = rand.Text()
	open = &visited{meta: meta, without: map[string]bool{}}
	v.open[token] = open
	return token, open, append(append(bytes.Clone(metaMagic), token...), encoded(meta)...)
}

// end removes a visit that is done.
func (v *visits) end(token string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.open, token)
}

// of returns the argument of a visitor from the metadata of its visit. If this process has requested the visit, open is
// the unfinished visit, else nil.
func (v *visits) of(metadata []byte) (meta any, open *visited, err error) {
	rest, isOurs := bytes.CutPrefix(metadata, metaMagic)
	if !isOurs || len(rest) < tokenBytes {
		return string(metadata), nil, nil
	}
	v.mutex.Lock()
	open = v.open[string(rest[:tokenBytes])]
	v.mutex.Unlock()
	rest = rest[tokenBytes:]
	switch {
	case open != nil:
		return open.meta, open, nil
	case len(rest) == 0:
		return nil, nil, nil
	}
	meta, err = codec.NewDecoder().Decode(rest[0], rest[1:])
	return meta, nil, err
}

// addVisitors adds the visitors of the graph to the group's step.
func (g *group) addVisitors(step stream.Stream[*stream.KafkaRecord]) stream.Stream[*stream.KafkaRecord] {
	for _, e := range g.graph.edges[visitor] {
		step = stream.OnVisit(step, e.Topic(), func(ctx context.Context, visit *stream.Visit, state *recordpb.GroupState) (*stream.KafkaRecord, error) {
			return nil, g.visited(ctx, e, visit, state)
		})
	}
	return step
}

// visited calls a visitor for a key if the group's table has a value for the key.
func (g *group) visited(ctx context.Context, e *edge, visit *stream.Visit, state *recordpb.GroupState) error {
	meta, open, err := g.visits.of(visit.Metadata)
	record := stream.KafkaRecord{Topic: e.Topic(), Key: visit.Key, Time: time.Now()}
	if g.count > 0 {
		place := placeOf(fnv.New32a(), visit.Key, g.count)
		record.Partition = &place
	}
	defer g.rescue(record)
	if err != nil {
		return g.fail(record, fmt.Errorf("Error visiting %s for %s: %v", e.Topic(), visit.Key, err))
	}
	if state.Value == nil {
		if open != nil {
			open.mutex.Lock()
			open.without[string(visit.Key)] = true
			open.mutex.Unlock()
		}
	} else if err := g.run(&call{group: g, emission: ctx, record: record, topic: Stream(e.Topic()), state: state, isVisit: true}, e.callback, meta); !errors.Is(err, errNone) {
		return err
	}
	if isEmpty(state) {
		visit.DeleteState()
	}
	return errNone
}

// Package memory runs an application in this process, for tests of user programs (package wallarootest). It uses the
// executors of a worker. Slices and maps take the place of journal, shuffle and state store.
package memory

import (
	"cmp"
	"fmt"
	"slices"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/plan"
	"wallarooapi/internal/stage"
	pb "wallarooapi/internal/workerpb"
)

// Engine runs one application. It is not safe for concurrent use.
type Engine struct {
	plan     *plan.Plan
	levels   []*level
	settings Settings
	batches  uint64
	visited  map[uint64]int // number of keys that a visit has reached, by the id of the visit
	fired    uint64         // number of timers that fired since the last call of Fired
}

// level is a stage of the plan, with its buckets. Its index in Engine.levels is the number of shuffles before it.
type level struct {
	executor *stage.Executor
	entries  map[uint16]bool // ports of the accepted frames; includes ticks if the level has windows or timed steps
	later    map[uint16]bool // ports that later levels accept
	buckets  map[uint32]*bucket
}

// row is a frame on its way to a later stage, or out of the application.
type row struct {
	bucket   int32 // -1 if the frame leaves the application
	port     uint16
	sequence uint64
	ordinal  int
	frame    []byte
}

// New compiles an application. If its declaration or its plan is faulty, New returns the findings.
func New(application *declaration.Application, settings Settings) (*Engine, []diagnostic.Diagnostic, error) {
	if found := application.Check(); len(found) > 0 {
		return nil, found, nil
	}
	compiled, found := plan.Compile(application, settings.Buckets, settings.FrameBytes)
	if len(found) > 0 {
		return nil, found, nil
	}
	e := &Engine{plan: compiled, settings: settings, visited: map[uint64]int{}}
	for _, described := range compiled.Levels {
		made, err := newLevel(application, described, settings)
		if err != nil {
			return nil, nil, fmt.Errorf("stage %q: %w", described.GetId(), err)
		}
		e.levels = append(e.levels, made)
	}
	for k, each := range e.levels {
		for _, later := range e.levels[k+1:] {
			for port := range later.entries {
				each.later[port] = true
			}
		}
	}
	return e, nil, nil
}

// newLevel compiles a stage, and finds out which frames its state steps accept.
func newLevel(application *declaration.Application, described *pb.Stage, settings Settings) (*level, error) {
	executor, err := stage.New(application, described)
	if err != nil {
		return nil, err
	}
	executor.InTest()
	if settings.ChecksPersist {
		executor.CheckPersist()
	}
	l := &level{executor: executor, entries: map[uint16]bool{}, later: map[uint16]bool{}, buckets: map[uint32]*bucket{}}
	for _, node := range described.GetNodes() {
		switch node.GetKind() {
		case pb.NodeKind_NODE_KIND_WINDOW:
			l.entries[frame.TickPort] = true
			l.entries[uint16(node.GetPort())] = true
		case pb.NodeKind_NODE_KIND_STATE_COMPUTATION, pb.NodeKind_NODE_KIND_STATE_COMPUTATION_MULTI:
			l.entries[uint16(node.GetPort())] = true
			if len(node.GetVisits()) > 0 {
				l.entries[frame.VisitPort] = true
			}
			if stage.IsTimed(node) {
				l.entries[frame.TickPort] = true
			}
		}
	}
	return l, nil
}

// PortOf returns the port (the number in frames) of a source or sink, given by its path.
func (e *Engine) PortOf(path string) uint16 { return e.plan.Ports[path] }

// Run processes the frames of one micro-batch. It returns the output of the application: frames of sinks and of dead
// letters. After an error the engine must not be used.
func (e *Engine) Run(frames [][]byte) (left [][]byte, err error) {
	e.batches++
	rows, err := e.runSources(frames)
	for k := 1; k < len(e.levels) && err == nil; k++ {
		rows, err = e.runLevel(k, rows)
	}
	if err != nil {
		return nil, err
	}
	for _, each := range rows {
		left = append(left, each.frame)
	}
	return left, nil
}

// runSources runs level 0 on chunks of the input frames. It also passes on ticks and visits to every bucket, if a later
// level accepts them, ahead of messages with the same sequence number.
func (e *Engine) runSources(frames [][]byte) (rows []row, err error) {
	first := e.levels[0]
	var mine [][]byte
	for _, data := range frames {
		span, _, err := frame.ReadSpan(data)
		if err != nil {
			return nil, err
		}
		if !frame.IsControl(span.Port) {
			mine = append(mine, data)
			continue
		}
		for bucket := range e.settings.Buckets {
			if first.later[span.Port] {
				rows = append(rows, row{int32(bucket), span.Port, span.First, -1, data})
			}
		}
	}
	for chunk := range slices.Chunk(mine, e.settings.chunk(len(mine))) {
		ordinal := 0
		first.executor.Begin(e.batches, nil)
		err := first.executor.Run(slices.Concat(chunk...), func(_ uint16, bucket int32, data []byte) error {
			added, err := newRow(bucket, ordinal, data)
			rows, ordinal = append(rows, added), ordinal+1
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// newRow makes a row of an output frame. ordinal orders rows with one sequence number.
func newRow(bucket int32, ordinal int, data []byte) (row, error) {
	span, _, err := frame.ReadSpan(data)
	return row{bucket, span.Port, span.First, ordinal, data}, err
}

// runLevel runs the state steps of a level on the rows for this level, bucket by bucket, and passes on the other rows.
func (e *Engine) runLevel(k int, rows []row) (made []row, err error) {
	level := e.levels[k]
	mine := map[uint32][]row{}
	for _, each := range rows {
		isMine := each.bucket >= 0 && level.entries[each.port]
		if isMine {
			mine[uint32(each.bucket)] = append(mine[uint32(each.bucket)], each)
		}
		if !isMine || level.later[each.port] {
			made = append(made, each)
		}
	}
	for _, number := range e.settings.arranged(mine) {
		outputs, err := e.runBucket(level, number, mine[number])
		if err != nil {
			return nil, err
		}
		for ordinal, output := range outputs {
			added, err := newRow(output.Bucket, int(number)<<16+ordinal, output.Frame)
			if err != nil {
				return nil, err
			}
			made = append(made, added)
		}
	}
	return made, nil
}

// runBucket runs the state steps of a level on the rows of one bucket.
func (e *Engine) runBucket(level *level, number uint32, rows []row) ([]stage.OutputFrame, error) {
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.ordinal, b.ordinal))
	})
	var frames []byte
	for _, each := range rows {
		frames = append(frames, each.frame...)
	}
	if level.buckets[number] == nil {
		level.buckets[number] = &bucket{}
	}
	level.executor.Begin(e.batches, nil)
	outputs, err := level.buckets[number].run(level.executor, frames, e.settings)
	for _, each := range level.executor.Visited() {
		e.visited[each.GetId()] += int(each.GetKeys())
	}
	for _, each := range level.executor.Counts() {
		e.fired += each.GetMore()["timers_fired"]
	}
	return outputs, err
}

// Fired reports whether timers have fired since the last call of Fired.
func (e *Engine) Fired() bool {
	fired := e.fired
	e.fired = 0
	return fired > 0
}

// Visited returns the number of keys for which a visit ran.
func (e *Engine) Visited(id uint64) int { return e.visited[id] }

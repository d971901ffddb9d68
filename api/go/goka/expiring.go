package goka

import (
	"context"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// endable is a step whose visitor with an empty name runs at the end of a state's expiring part.
type endable interface {
	Add(name string, visitor func(context.Context, *stream.Visit, *recordpb.GroupState) (*stream.KafkaRecord, error))
}

// expiring makes the TTL of a group end the values of its table. Joined values stay, because their table has them.
func expiring(app *stream.Application, groups []*group) {
	ends := map[string]*group{}
	for _, g := range groups {
		ends[string(g.graph.Group())] = g
	}
	for _, pipeline := range declaration.Revealed(app).Pipelines {
		for _, step := range pipeline.Steps {
			if step.State == nil || step.State.TTLMs == 0 {
				continue
			}
			step.State.Expiring = &declaration.Expiring{Prolongs: isOfInput, IsIn: hasValue, IsEmpty: isEmpty}
			step.Stateful.(endable).Add("", ends[step.Name].ended)
		}
	}
}

func isOfInput(message any) bool {
	record, is := message.(stream.KafkaRecord)
	return is && !strings.HasPrefix(record.Topic, joinedPrefix)
}

func hasValue(state any) bool { return state.(*recordpb.GroupState).Value != nil }

func isEmpty(state any) bool {
	return !hasValue(state) && len(state.(*recordpb.GroupState).Joined) == 0
}

// ended deletes the value of a key whose TTL is over.
func (g *group) ended(ctx context.Context, visit *stream.Visit, state *recordpb.GroupState) (*stream.KafkaRecord, error) {
	record := stream.KafkaRecord{Topic: g.graph.tableTopic, Key: visit.Key}
	c := &call{group: g, emission: ctx, record: record, topic: Stream(record.Topic), state: state, isVisit: true}
	err := g.run(c, func(Context, any) { c.Delete() }, nil)
	if isEmpty(state) {
		visit.DeleteState()
	}
	return nil, err
}

package goka

import (
	"context"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// endable is a step with state to which visitors can be added. The visitor with the empty name runs when the TTL of a
// key is over.
type endable interface {
	Add(name string, visitor func(context.Context, *stream.Visit, *recordpb.GroupState) (*stream.KafkaRecord, error))
}

// finishStates completes the declarations of the groups' states. It sets the function by which commands such as
// `wallaroo state get` show a state. It also limits the effect of a TTL to the value in the group's table: the values
// of joined tables stay in the state, because their tables still contain them.
func finishStates(app *stream.Application, groups []*group) {
	byName := map[string]*group{}
	for _, g := range groups {
		byName[string(g.graph.Group())] = g
	}
	for step := range declaration.Revealed(app).Steps() {
		if step.State == nil {
			continue
		}
		g := byName[step.Name]
		step.State.Show = g.shown
		if step.State.TTLMs > 0 {
			step.State.Expiring = &declaration.Expiring{Prolongs: isOfInput, IsIn: hasValue, IsEmpty: isEmpty}
			step.Stateful.(endable).Add("", g.ended)
		}
	}
}

// isOfInput reports whether a message starts the TTL of its key again. Messages of inputs and the loop do, records of
// joined tables do not.
func isOfInput(message any) bool {
	record, is := message.(stream.KafkaRecord)
	return is && !strings.HasPrefix(record.Topic, joinedPrefix)
}

// hasValue reports whether a state has a value in the group's table.
func hasValue(state any) bool { return state.(*recordpb.GroupState).Value != nil }

// isEmpty reports whether a state has neither a value in the group's table nor joined values.
func isEmpty(state any) bool {
	return !hasValue(state) && len(state.(*recordpb.GroupState).Joined) == 0
}

// ended deletes the value of a key whose TTL is over.
func (g *group) ended(ctx context.Context, visit *stream.Visit, state *recordpb.GroupState) (*stream.KafkaRecord, error) {
	record := stream.KafkaRecord{Topic: g.graph.tableTopic, Key: visit.Key}
	defer g.rescue(record)
	c := &call{group: g, emission: ctx, record: record, topic: Stream(record.Topic), state: state, isVisit: true}
	err := g.run(c, func(Context, any) { c.Delete() }, nil)
	if isEmpty(state) {
		visit.DeleteState()
	}
	return nil, err
}

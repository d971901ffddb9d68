package goka

import (
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/recordpb"
	"wallarooapi/stream"
)

// showing makes commands such as `wallaroo state get` show the states of groups as decoded by the codecs of their
// edges.
func showing(app *stream.Application, groups []*group) {
	shows := map[string]func(any) any{}
	for _, g := range groups {
		shows[string(g.graph.Group())] = g.shown
	}
	for _, pipeline := range declaration.Revealed(app).Pipelines {
		for _, step := range pipeline.Steps {
			if step.State != nil {
				step.State.Show = shows[step.Name]
			}
		}
	}
}

// shown returns a decoded value in the form in which it is displayed, which is the same as in Python.
func (g *group) shown(value any) any {
	state, is := value.(*recordpb.GroupState)
	if !is {
		return value
	}
	joined := map[string]any{}
	for topic, data := range state.Joined {
		var codec Codec
		for _, e := range g.graph.JointTables() {
			if e.Topic() == topic {
				codec = e.Codec()
			}
		}
		joined[topic] = decoded(codec, data)
	}
	var own any
	if table := g.graph.GroupTable(); table != nil && state.Value != nil {
		own = decoded(table.Codec(), state.Value)
	}
	return map[string]any{"value": own, "joined": joined}
}

// decoded returns the value in data. If the codec fails, e.g. for data of another program version, it returns data.
func decoded(codec Codec, data []byte) (value any) {
	if codec == nil {
		return data
	}
	defer func() {
		if recover() != nil {
			value = data
		}
	}()
	value, err := codec.Decode(data)
	if err != nil {
		return data
	}
	return value
}

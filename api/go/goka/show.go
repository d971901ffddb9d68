package goka

import "wallarooapi/internal/recordpb"

// shown returns the state of a key for commands such as `wallaroo state get`, which print it. The state has the value
// in the group's table and those of joined tables, decoded by the codecs of the edges. The form is the same as in
// Python.
func (g *group) shown(value any) any {
	state, is := value.(*recordpb.GroupState)
	if !is {
		return value
	}
	joined := map[string]any{}
	for topic, data := range state.Joined {
		joined[topic] = data
		if g.graph.has(joint, topic) {
			joined[topic] = decoded(g.graph.codecs[topic], data)
		}
	}
	var own any
	if table := g.graph.GroupTable(); table != nil && state.Value != nil {
		own = decoded(table.Codec(), state.Value)
	}
	return map[string]any{"value": own, "joined": joined}
}

// decoded returns the value in data. If the codec fails, e.g. for data of another program version, it returns data.
func decoded(codec Codec, data []byte) (value any) {
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

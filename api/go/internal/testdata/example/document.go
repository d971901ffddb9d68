package example

import (
	"encoding/json"
	"fmt"
	"strings"
)

type object = map[string]any

// Show prints members of the topology document for an Example. part is "sources", "steps", "sinks" or "components".
// Each of them is a line with the given members, in which "state.key" is a member of a member, and "-" stands for a
// missing one. If the declaration has mistakes, Show prints the findings.
func Show(document, part string, members ...string) {
	var content struct {
		Components  []object
		Pipelines   []map[string]json.RawMessage
		Diagnostics []struct{ Code, Message, Fix string }
	}
	if err := json.Unmarshal([]byte(document), &content); err != nil {
		panic(err)
	}
	for _, found := range content.Diagnostics {
		fmt.Println(found.Code, found.Message+"; fix:", found.Fix)
	}
	parts := content.Components
	for _, pipeline := range content.Pipelines {
		var of []object
		if err := json.Unmarshal(pipeline[part], &of); err != nil {
			panic(err)
		}
		parts = append(parts, of...)
	}
	for _, one := range parts {
		shown := make([]any, len(members))
		for i, member := range members {
			shown[i] = inner(one, strings.Split(member, "."))
		}
		fmt.Println(shown...)
	}
}

func inner(value any, path []string) any {
	for _, member := range path {
		in, _ := value.(object)
		value = in[member]
	}
	if value == nil {
		return "-"
	}
	return value
}

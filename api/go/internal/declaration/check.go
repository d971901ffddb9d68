package declaration

import (
	"fmt"
	"strconv"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// Check returns all findings about the application, sorted by their pointers. It first gives the sinks their final
// names.
func (a *Application) Check() []diagnostic.Diagnostic {
	checked := &Application{Name: a.Name, OnError: a.OnError, Place: a.Place, Pipelines: a.Pipelines, Offers: a.Offers}
	checked.Found = append(checked.Found, a.Found...)
	if a.Offers != nil {
		checked.checkOffers()
		diagnostic.Sort(checked.Found)
		return checked.Found
	}
	for _, pipeline := range a.Pipelines {
		pipeline.nameApart()
	}
	checked.checkNames()
	checked.checkPolicies()
	checked.checkEnds()
	checked.checkAddresses()
	checked.checkStates()
	checked.checkVisits()
	checked.checkMessageKeys()
	checked.declareCodecs()
	diagnostic.Sort(checked.Found)
	return checked.Found
}

// nameApart renames sinks of a pipeline if several have the default name, which is that of the pipeline. A Kafka sink
// gets the name of its topic. Of the others, all but the first get a number after the name.
func (p *Pipeline) nameApart() {
	same, taken := 0, map[string]bool{}
	for _, sink := range p.Sinks {
		if sink.Name == p.Name {
			same++
		}
	}
	for _, sink := range p.Sinks {
		if topic, isTopic := sink.Edge.(*topology.Kafka); isTopic && same > 1 && sink.Name == p.Name {
			sink.Name = topic.Topic
		}
		taken[sink.Name] = sink.Name != p.Name
	}
	for _, sink := range p.Sinks {
		if sink.Name != p.Name {
			continue
		}
		for number := 2; taken[sink.Name]; number++ {
			sink.Name = fmt.Sprintf("%s-%d", p.Name, number)
		}
		taken[sink.Name] = true
	}
}

// checkNames reports unusable names, and names of sinks that occur twice.
func (a *Application) checkNames() {
	a.checkName("application", a.Name, "/name", a.Place)
	sinks := map[string]bool{}
	for _, pipeline := range a.Pipelines {
		a.checkName("pipeline", pipeline.Name, Pointer(strconv.Itoa(pipeline.Number), "name"), pipeline.Place)
		for _, source := range pipeline.Sources {
			if source.Name != pipeline.Name { // else it was checked with the pipeline
				a.checkName("source", source.Name, Pointer(source.Path, "name"), source.Place)
			}
		}
		for _, sink := range pipeline.Sinks {
			if sink.Name != pipeline.Name && sink.Name != "" { // without a name it has that of its pipeline
				a.checkName("sink", sink.Name, Pointer(sink.Path, "name"), sink.Place)
			}
			_, isTopic := sink.Edge.(*topology.Kafka) // sinks of one topic may have the same name
			if !isTopic && sinks[sink.Name] {
				a.Report(diagnostic.Of("T203", "what", fmt.Sprintf("sink %q", sink.Name), "kind", "name"), Pointer(sink.Path, "name"), sink.Place)
			}
			sinks[sink.Name] = true
		}
		for _, step := range pipeline.Steps {
			// A step without a symbol has already been reported, and its name is unknown.
			if step.Symbol != "" {
				a.checkName("step", step.Name, Pointer(step.Path, "name"), step.Place)
			}
			if step.State != nil {
				a.checkName("state", step.State.Name, Pointer(step.Path, "state", "name"), step.Place)
			}
		}
	}
}

// checkPolicies reports unknown error policies.
func (a *Application) checkPolicies() {
	a.checkPolicy(a.OnError, "/on_error", a.Place)
	for source := range a.Sources() {
		a.checkPolicy(source.OnError, Pointer(source.Path), source.Place)
	}
	for step := range a.Steps() {
		a.checkPolicy(step.OnError, Pointer(step.Path), step.Place)
	}
	for sink := range a.Sinks() {
		a.checkPolicy(sink.OnError, Pointer(sink.Path), sink.Place)
	}
}

// SetPolicy sets the error policy of the source, step or sinks that were added last. path is the path of the part at
// which the program called OnError. Without a part that was added last, e.g. after Merge, the call is reported (T207).
func (a *Application) SetPolicy(last []*string, policy, path string) {
	for _, each := range last {
		*each = policy
	}
	if len(last) == 0 {
		a.Report(diagnostic.Wrong("OnError", "policy", diagnostic.Shown(policy)+" for no source, step or sink",
			"a call directly after one of them", "call OnError directly after the source, step or sinks"), Pointer(path), Caller())
	}
}

func (a *Application) checkPolicy(policy, pointer string, place Place) {
	const expected = `"dead_letter" or "fail"`
	if policy != "" && policy != "dead_letter" && policy != "fail" {
		a.Wrong(pointer, place, "OnError", "policy", diagnostic.Shown(policy), expected)
	}
}

func (a *Application) checkName(what, name, pointer string, place Place) {
	if fault := topology.NameFault(name); fault != "" {
		a.Report(diagnostic.Of("T210", "what", what, "name", diagnostic.Shown(name), "reason", fault), pointer, place)
	}
}

// checkEnds reports sources and steps whose messages no step or sink reads, and an application without sinks.
func (a *Application) checkEnds() {
	sinks, parts := 0, a.Parts()
	for _, pipeline := range a.Pipelines {
		sinks += len(pipeline.Sinks)
		for _, node := range pipeline.Nodes {
			if node.Consumers == 0 && !node.Ended {
				name := parts.NameOf(node.Path)
				if name == node.Path {
					name = node.What // the source is missing
				}
				a.Report(diagnostic.Of("T204", "what", "pipeline", "name", pipeline.Name,
					"end", fmt.Sprintf("end after %q", name)), Pointer(node.Path), node.Place)
			}
		}
	}
	if sinks == 0 {
		a.Report(diagnostic.Of("T204", "what", "application", "name", a.Name, "end", "sink"), "/pipelines", a.Place)
	}
}

func (a *Application) checkAddresses() {
	for source := range a.Sources() {
		a.checkAddress("source", source.Edge, source.Found, source.Path, source.Place)
	}
	for sink := range a.Sinks() {
		a.checkAddress("sink", sink.Edge, sink.Found, sink.Path, sink.Place)
	}
}

// checkAddress reports an invalid address of a source or sink. It does not report a missing address if the declaration
// of the source or sink already has findings (found), because they explain it.
func (a *Application) checkAddress(what string, edge topology.Edge, found []diagnostic.Diagnostic, path string, place Place) {
	var host, port string
	switch of := edge.(type) {
	case *topology.TCP:
		host, port = of.Host, of.Port
	case *topology.Connector:
		host, port = of.Host, of.Port
	case *topology.ConnectorSink:
		host, port = of.Host, of.Port
	default:
		return
	}
	if host+port == "" && len(found) > 0 {
		return
	}
	if _, fault := topology.Address(host, port); fault != "" {
		a.Report(diagnostic.Of("T211", "what", what, "value", diagnostic.Shown(host+":"+port), "reason", fault),
			Pointer(path, "host"), place)
	}
}

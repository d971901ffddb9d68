package application

import (
	"cmp"
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// PipelineBuilder adds steps and sinks after one source or step of a pipeline. Each method that adds a step returns a
// builder that continues after this step. If a builder is used twice, the pipeline branches there, and each message
// goes to both branches.
type PipelineBuilder struct {
	application *declaration.Application
	pipeline    *declaration.Pipeline
	node        *declaration.Node
	policies    []*string // policies of the source, step or sinks added last, which OnError sets
}

// OnError sets the policy for messages on which the step, source or sinks added last fail: "dead_letter" or "fail" (see
// Application.OnError). After NewPipeline this is the source, after ToSink the sink. The default is the application's
// policy. Any other value is reported (T207). OnError returns the builder.
func (p *PipelineBuilder) OnError(policy string) *PipelineBuilder {
	p.application.SetPolicy(p.policies, policy, p.node.Path)
	return p
}

// To adds a step. builder must build a wallarooapi.Computation (T223) or be a component of another program, e.g. the
// result of wallarooapi.OtherProgram(...).Computation. A component with state gets the state of the message's key, so
// its messages must have keys.
func (p *PipelineBuilder) To(builder wa.ComputationBuilder) *PipelineBuilder {
	return p.addComputation("To", declaration.Computation, builder)
}

// ToMulti adds a step with any number of results. builder must build a wallarooapi.ComputationMulti (T223) or be a
// component of another program (see To).
func (p *PipelineBuilder) ToMulti(builder wa.ComputationMultiBuilder) *PipelineBuilder {
	return p.addComputation("ToMulti", declaration.ComputationMulti, builder)
}

// ToStatePartition adds a step with state. pf returns the key of each message, sb makes the state of a new key, and sc
// processes the message with the state of its key. name is the name of the state.
//
// pf is a wallarooapi.PartitionFunction or a wallarooapi.PartitionFunctionU64. Messages with the same key are
// processed in arrival order. Different keys run in parallel. Pipelines that use the same state name share the state,
// and must agree on its builder and its keys (T205).
//
// Without the argument keys, every new key gets new state (as in Wallaroo 0.5). With it, only the listed keys are
// allowed (as in Wallaroo 0.4): a message with another key becomes a dead letter (C502). These are reported: a
// partition function that returns another type (T208, T223), a state that is not serializable (C504), and by a run a
// key that is listed twice (T203).
func (p *PipelineBuilder) ToStatePartition(sc wa.StateComputation, sb wa.StateBuilder, name string, pf interface{}, keys ...[]uint64) *PipelineBuilder {
	return p.addState("ToStatePartition", declaration.StateComputation, sc, stateWithNumbers(name, sb, keys), pf)
}

// ToStatePartitionWithKeys is ToStatePartition with a list of keys that are known in advance. Keys that are not in the
// list get new state, too.
func (p *PipelineBuilder) ToStatePartitionWithKeys(sc wa.StateComputation, sb wa.StateBuilder, name string, pf wa.PartitionFunction, keys [][]byte) *PipelineBuilder {
	return p.addState("ToStatePartitionWithKeys", declaration.StateComputation, sc, stateWithKeys(name, sb, keys), pf)
}

// ToStatePartitionMulti is ToStatePartition for a state computation with any number of results.
func (p *PipelineBuilder) ToStatePartitionMulti(sc wa.StateComputationMulti, sb wa.StateBuilder, name string, pf interface{}, keys ...[]uint64) *PipelineBuilder {
	return p.addState("ToStatePartitionMulti", declaration.StateComputationMulti, sc, stateWithNumbers(name, sb, keys), pf)
}

// ToStatePartitionMultiWithKeys is ToStatePartitionWithKeys for a state computation with any number of results.
func (p *PipelineBuilder) ToStatePartitionMultiWithKeys(sc wa.StateComputationMulti, sb wa.StateBuilder, name string, pf wa.PartitionFunction, keys [][]byte) *PipelineBuilder {
	return p.addState("ToStatePartitionMultiWithKeys", declaration.StateComputationMulti, sc, stateWithKeys(name, sb, keys), pf)
}

// Output returns a builder that continues with the messages of a named output of the step added last. The step must
// declare this output (T273); see wallarooapi.WithOutputs. The step's other results continue from the builder on which
// Output was called.
func (p *PipelineBuilder) Output(name string) *PipelineBuilder {
	node := p.application.OutputOf(p.pipeline, p.node.Path, name)
	return &PipelineBuilder{p.application, p.pipeline, node, nil}
}

// ToSink ends the pipeline with a sink, which encodes and sends the messages.
func (p *PipelineBuilder) ToSink(sinkConfig SinkConfig) *PipelineBuilder {
	return p.addSinks("ToSink", sinkConfig)
}

// ToSinks ends the pipeline. Every message goes to each of the sinks. At least one sink is required (T207).
//
// Source: Wallaroo 0.5.
func (p *PipelineBuilder) ToSinks(sinkConfigs ...SinkConfig) *PipelineBuilder {
	return p.addSinks("ToSinks", sinkConfigs...)
}

// Done ends the pipeline without a sink. Its messages are dropped.
func (p *PipelineBuilder) Done() {
	p.follow("Done", declaration.Caller())
	p.node.Ended = true
}

// add adds a step of a kind, and returns it with a builder that continues after the step.
func (p *PipelineBuilder) add(method, kind string) (*declaration.Step, *PipelineBuilder) {
	place := declaration.Caller()
	p.follow(method, place)
	p.node.Consumers++
	step := &declaration.Step{
		Path: p.pipeline.Path("steps", len(p.pipeline.Steps)), Kind: kind, Inputs: []string{p.node.Path}, Place: place,
	}
	p.pipeline.Steps = append(p.pipeline.Steps, step)
	node := &declaration.Node{Path: step.Path, What: method, Place: place}
	p.pipeline.Nodes = append(p.pipeline.Nodes, node)
	return step, &PipelineBuilder{p.application, p.pipeline, node, []*string{&step.OnError}}
}

func (p *PipelineBuilder) addComputation(method, kind string, builder interface{ Build() interface{} }) *PipelineBuilder {
	step, next := p.add(method, kind)
	if remote, ok := builder.(*wa.RemoteComponent); ok && remote != nil {
		p.application.NewRemote(step, method, remote, remote.Name)
	} else {
		p.application.NewComputation(step, method, builder)
	}
	p.application.AddOutputs(p.pipeline, step)
	return next
}

func (p *PipelineBuilder) addState(method, kind string, named interface{ Name() string }, state *declaration.State, pf any) *PipelineBuilder {
	step, next := p.add(method, kind)
	step.State, step.Given = state, pf
	p.application.NewStateComputation(step, method, named)
	p.application.AddOutputs(p.pipeline, step)
	return next
}

func (p *PipelineBuilder) addSinks(method string, sinkConfigs ...SinkConfig) *PipelineBuilder {
	place := declaration.Caller()
	p.follow(method, place)
	p.policies = nil
	for _, config := range sinkConfigs {
		path := p.pipeline.Path("sinks", len(p.pipeline.Sinks))
		sink := &declaration.Sink{}
		if config != nil {
			sink = config.sink()
		}
		for _, found := range sink.Found {
			p.application.Report(found, declaration.Pointer(path), place)
		}
		if sink.Encode == nil && len(sink.Found) == 0 {
			p.wrongParameter(method, path, place)
		}
		sink.Path, sink.Name, sink.Inputs, sink.Place = path, cmp.Or(sink.Name, p.pipeline.Name), []string{p.node.Path}, place
		p.pipeline.Sinks = append(p.pipeline.Sinks, sink)
		p.policies = append(p.policies, &sink.OnError)
	}
	if len(sinkConfigs) == 0 {
		p.wrongParameter(method, p.node.Path, place)
	}
	p.node.Ended = true
	return p
}

// wrongParameter reports that a sink is missing or cannot be used (T207).
func (p *PipelineBuilder) wrongParameter(method, path string, place declaration.Place) {
	found := diagnostic.Wrong(method, "sinkConfig", "without a sink or an encoder", "a sink", "pass what e.g. MakeTCPSinkConfig returns for an encoder")
	p.application.Report(found, declaration.Pointer(path), place)
}

// follow reports the call of a method if the pipeline has already ended (T212).
func (p *PipelineBuilder) follow(method string, place declaration.Place) {
	if p.node.Ended {
		p.application.Report(diagnostic.Of("T212", "method", method, "previous", "the end of pipeline \""+p.pipeline.Name+"\"",
			"reason", "nothing follows a sink", "fix", "put it before ToSink, or use ToSinks for several sinks"),
			declaration.Pointer(p.node.Path), place)
	}
}

// stateWithNumbers describes a state whose keys are the numbers in lists. If there is a list, other keys are not
// allowed.
func stateWithNumbers(name string, sb wa.StateBuilder, lists [][]uint64) *declaration.State {
	state := &declaration.State{Name: name, Builder: sb, Closed: len(lists) > 0}
	for _, list := range lists {
		for _, number := range list {
			state.Keys = append(state.Keys, topology.IntegerKey(number))
		}
	}
	return state
}

// stateWithKeys describes a state with some keys that are known in advance.
func stateWithKeys(name string, sb wa.StateBuilder, keys [][]byte) *declaration.State {
	state := &declaration.State{Name: name, Builder: sb}
	for _, key := range keys {
		state.Keys = append(state.Keys, topology.DeclaredKey{Bytes: append([]byte(nil), key...)})
	}
	return state
}

package declaration

import (
	"strings"

	wa "wallarooapi"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// IsStateful reports whether a kind of step has state.
func IsStateful(kind string) bool { return strings.HasPrefix(kind, StateComputation) }

// NewRemote sets the fields of a step that is a component of another program's library. If the component has state, the
// parameter state is the name of this state, and a message gets the state of the key that it carries.
func (a *Application) NewRemote(step *Step, method string, component *wa.RemoteComponent, state string) {
	own := *component
	program, pointer := own.Program, Pointer(step.Path)
	step.Kind, step.Name, step.Symbol, step.Codec, step.Remote = own.Kind, own.Name, "", own.Output, &own
	if IsStateful(step.Kind) {
		step.State = &State{Name: state, ByKey: true}
	}
	for _, output := range component.Outputs {
		step.Outputs = append(step.Outputs, NamedOutput{Name: output.Name, Codec: output.Codec})
	}
	a.checkName("worker", program.Worker, pointer, step.Place)
	a.checkName("component", component.Name, pointer, step.Place)
	switch {
	case program.Worker == topology.WorkerName:
		a.Wrong(pointer, step.Place, "OtherProgram", "worker", diagnostic.Shown(program.Worker), `a name other than "main"`)
	case program.Target == "":
		a.Wrong(pointer, step.Place, "OtherProgram", "target", diagnostic.Shown(program.Target), "a file or directory")
	}
	a.checkCodec(pointer, step, method, "input", component.Input, step.Input)
	a.checkCodec(pointer, step, method, "output", component.Output, step.Output)
	a.checkOutputs(pointer, step, method)
}

// Programs returns the other programs whose components the application uses: for each worker name in the topology, the
// target of the program (a file or directory).
func (a *Application) Programs() map[string]string {
	programs := map[string]string{}
	for step := range a.Steps() {
		if step.Remote != nil {
			programs[step.Remote.Program.Worker] = step.Remote.Program.Target
		}
	}
	return programs
}

// declareCodecs sets the codec of each source and step that sends messages to a component of another program. It is the
// input codec of this component.
func (a *Application) declareCodecs() {
	parts := a.Parts()
	for step := range a.Steps() {
		if step.Remote == nil || step.Kind == Output {
			continue
		}
		for _, input := range step.Inputs {
			if source := parts.Sources[input]; source != nil {
				a.declareCodec(step, &source.Codec, source.Name)
			} else if producer := parts.Steps[input]; producer != nil {
				a.declareCodec(step, &producer.Codec, producer.Name)
			}
		}
	}
}

// declareCodec sets the codec of one source or step. It reports a producer with two consumers that need different
// codecs.
func (a *Application) declareCodec(step *Step, codec *string, producer string) {
	if *codec == "" {
		*codec = step.Remote.Input
	}
	if *codec != step.Remote.Input {
		a.Report(diagnostic.Of("T261", "step", step.Name, "input", step.Remote.Input, "producer", producer, "codec", *codec),
			Pointer(step.Path), step.Place)
	}
}

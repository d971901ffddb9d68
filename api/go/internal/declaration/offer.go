package declaration

import (
	"maps"
	"reflect"
	"slices"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// LibraryName is the name of each library, which the program does not choose.
const LibraryName = "library"

// Offer is a component of a library: a step that other programs can use. Step has no inputs, and its path is its name.
type Offer struct {
	Step   *Step
	Input  string // codec of the messages that the component gets
	Output string // codec of its results
}

// NewLibrary begins the declaration of a library: an application without pipelines.
func NewLibrary() *Application {
	return &Application{Name: LibraryName, Place: Caller(), Offers: map[string]*Offer{}}
}

// Offer adds a component to a library. Its step must be complete. method is the public method that the program has
// called, for findings.
func (a *Application) Offer(method string, offer *Offer) {
	step := offer.Step
	if step.Symbol == "" {
		return // reported already
	}
	a.checkName("component", step.Name, "", step.Place)
	if _, taken := a.Offers[step.Name]; taken {
		a.Wrong("", step.Place, method, "components", diagnostic.Shown(step.Name)+" again", "components with names of their own")
	}
	a.checkCodec("", step, method, "input", offer.Input, step.Input)
	a.checkCodec("", step, method, "output", offer.Output, step.Output)
	a.checkOutputs("", step, method)
	step.Path = step.Name
	a.Offers[step.Name] = offer
}

// checkCodec reports an unknown codec, and a codec that cannot write messages of type t.
func (a *Application) checkCodec(pointer string, step *Step, method, parameter, name string, t reflect.Type) {
	form, ok := codec.BuiltinOf(name)
	if !ok {
		expected, fix := codec.Expected(name)
		a.Report(diagnostic.Wrong(method, parameter, diagnostic.Shown(name), expected, fix), pointer, step.Place)
		return
	}
	if !form.Holds(t) {
		a.Report(diagnostic.Of("T262", "step", step.Name, "what", parameter, "type", t, "codec", name), pointer, step.Place)
	}
}

// Wrong reports a wrong argument for a parameter of a public method.
func (a *Application) Wrong(pointer string, place Place, method, parameter, actual, expected string) {
	a.Report(diagnostic.Wrong(method, parameter, actual, expected), pointer, place)
}

func (a *Application) checkOffers() {
	if len(a.Offers) == 0 {
		a.Wrong("", a.Place, LibraryName, "components", "empty", "components with names of their own, at least one")
	}
}

// offered returns the components of a library, sorted by name. tree makes the JSON object of a component for the
// document.
func (a *Application) offered(tree func(*Offer) topology.Object) topology.Array {
	return topology.ArrayOf(slices.Sorted(maps.Keys(a.Offers)), func(name string) topology.Object { return tree(a.Offers[name]) })
}

// tree returns those members of a component that a program needs to use it: name, kind, codecs and named outputs.
func (o *Offer) tree() topology.Object {
	members := topology.Of("name", o.Step.Name, "kind", o.Step.Kind, "input", o.Input, "output", o.Output)
	if len(o.Step.Outputs) == 0 {
		return members
	}
	return members.With("outputs", topology.ArrayOf(o.Step.Outputs, func(output NamedOutput) topology.Object {
		return topology.Of("name", output.Name, "codec", output.Codec)
	}))
}

// symbol returns the members that describe the user code of a component.
func (o *Offer) symbol() topology.Object {
	if o.Step.State == nil {
		return symbolTree(o.Step.Symbol, o.Step.Place, nil)
	}
	return symbolTree(o.Step.Symbol, o.Step.Place, o.Step.State.Shape)
}

package stream

import (
	"cmp"
	"context"
	"reflect"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/workermain"
)

// Library declares components: functions that other programs, in Python or Go, use as steps of their applications. A
// program whose setup returns a library has no application of its own. The runtime starts it for each application that
// uses one of its components.
//
//	func setup(args []string) *stream.Library {
//		library := stream.NewLibrary()
//		stream.OfferMap(library, "score", score, "json", "float64")
//		return library
//	}
//
// Messages between programs are written in codecs: "bytes", "string", "int64", "float64", "json" and
// "protobuf:FULL.NAME". A codec must be able to write the Go type (T262). "json" can write the types of encoding/json,
// "protobuf:FULL.NAME" the pointer to the generated type of that name, and each other codec the type in its name.
// Reported as T207 are an unknown codec, a protobuf message whose generated package is not imported, a name that is
// already used, and a nil function.
type Library struct{ declared *declaration.Application }

// NewLibrary begins the declaration of a library.
func NewLibrary() *Library {
	codec.IsTyped.Store(true)
	return &Library{declaration.NewLibrary()}
}

// ToJson ends the declaration and returns the components of the library as JSON text. If the declaration has findings
// (see Application.Check), ToJson returns an object with the key "diagnostics" instead. Package worker calls ToJson;
// programs need not.
func (l *Library) ToJson() string { return workermain.Text(l.declared) }

// OfferMap adds a component to a library: a function of the kind that Map takes. Other programs use it under the given
// name. input and output are the codecs of its input and output messages.
func OfferMap[In, Out any](l *Library, name string, function func(ctx context.Context, in In) (Out, error), input, output string, outputs ...Outputs) {
	step := stateless(name, declaration.Computation, function, resultsOf[Out]().settle, outputs)
	offer[In, Out](l, "OfferMap", name, step, function, input, output)
}

// OfferFlatMap is OfferMap for a function of the kind that FlatMap takes: one that returns any number of results.
func OfferFlatMap[In, Out any](l *Library, name string, function func(ctx context.Context, in In) ([]Out, error), input, output string, outputs ...Outputs) {
	step := stateless(name, declaration.ComputationMulti, function, resultsOf[Out]().all, outputs)
	offer[In, Out](l, "OfferFlatMap", name, step, function, input, output)
}

// OfferMapState is OfferMap for a function of the kind that MapState takes. The function gets the state of the key that
// the message carries.
func OfferMapState[In, S, Out any](l *Library, name string, function func(ctx context.Context, in In, state *S) (Out, error), input, output string, outputs ...Outputs) {
	made := &stateful[In, S, Out]{emitter: emitter{emits: len(outputs) > 0}, function: function, settle: resultsOf[Out]().settle}
	offer[In, Out](l, "OfferMapState", name, offeredState[S](name, declaration.StateComputation, made, outputs), function, input, output)
}

// OfferFlatMapState is OfferMapState for a function of the kind that FlatMapState takes: one that returns any number of
// results.
func OfferFlatMapState[In, S, Out any](l *Library, name string, function func(ctx context.Context, in In, state *S) ([]Out, error), input, output string, outputs ...Outputs) {
	made := &stateful[In, S, []Out]{emitter: emitter{emits: len(outputs) > 0}, function: function, settle: resultsOf[Out]().all}
	offer[In, Out](l, "OfferFlatMapState", name, offeredState[S](name, declaration.StateComputationMulti, made, outputs), function, input, output)
}

// offeredState returns the step of a component with state.
func offeredState[S any](name, kind string, made declaration.Stateful, outputs []Outputs) *declaration.Step {
	state := &declaration.State{Name: name, Builder: builder[S]{}, ByKey: true}
	return &declaration.Step{Kind: kind, Stateful: made, State: state, Outputs: namesOf(outputs)}
}

// offer adds the step of a component to a library.
func offer[In, Out any](l *Library, method, name string, step *declaration.Step, function any, input, output string) {
	step.Name, step.Place, step.Symbol = name, declaration.Caller(), symbolOf(function)
	step.Input, step.Output = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if reflect.ValueOf(function).IsNil() {
		l.declared.Wrong("", step.Place, method, "function", "nil", "a function")
	}
	if step.State != nil {
		l.declared.LearnState(step)
	}
	for i := range step.Outputs {
		step.Outputs[i].Codec = cmp.Or(step.Outputs[i].Codec, "json")
	}
	l.declared.Offer(method, &declaration.Offer{Step: step, Input: input, Output: output})
}

// Through sends each message to a component that another program offers, and returns the stream of the component's
// results. Out is the type of these results:
//
//	scores := stream.Through[float64](orders, wallarooapi.OtherProgram("scorer", "scorer.py").Computation("score", "json", "float64"))
//
// A component with state gets the state of the key that a message carries. Put KeyBy or Collect before Through, unless
// the source gives keys (T229).
func Through[Out, In any](s Stream[In], component *wa.RemoteComponent) Stream[Out] {
	if component == nil {
		component = &wa.RemoteComponent{}
	}
	step := &declaration.Step{Kind: declaration.Computation}
	next := add[In, Out](s, step, Through[Out, In])
	state := ""
	if declaration.IsStateful(component.Kind) {
		state = s.application.stateName(component.Name)
	}
	s.application.declared.NewRemote(step, "Through", component, state)
	s.application.declared.AddOutputs(s.application.pipeline, step)
	return next
}

package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/launch"
)

// Library declares components that other programs, in Python or Go, use in their applications. A program whose setup returns its
// ToJson has no application of its own: it is run with those that name it.
//
//	library := application.MakeLibrary()
//	library.Offer(&ScoreBuilder{}, "json", "float64")
//	return library.ToJson()
//
// Messages come and go in codecs: "bytes" ([]byte), "string", "int64", "float64", "json" (nil, bool, string, int64, float64,
// []interface{}, map[string]interface{}; an output may be anything that encoding/json writes), and "protobuf:FULL.NAME"
// (pointers to the generated type of that name).
type Library struct {
	declared *declaration.Application
}

// MakeLibrary begins the declaration of a library.
func MakeLibrary() *Library { return &Library{declaration.NewLibrary()} }

// Offer offers a computation under its name; builder is a wallarooapi.ComputationBuilder or a wallarooapi.ComputationMultiBuilder.
// input is the codec of the messages that it takes, output that of those that it gives. A builder of
// something else is found (T223), so are codecs that are none and names that are taken (T207). It returns the library.
func (l *Library) Offer(builder interface{ Build() interface{} }, input, output string) *Library {
	step := &declaration.Step{Kind: declaration.Computation, Place: declaration.Caller()}
	if builder != nil {
		if _, isMulti := builder.Build().(wa.ComputationMulti); isMulti {
			step.Kind = declaration.ComputationMulti
		}
	}
	l.declared.NewComputation(step, "Offer", builder)
	return l.offer("Offer", step, input, output)
}

// OfferState offers a state computation under its name; sb builds the state of a new key. Its key is the one that a message carries.
func (l *Library) OfferState(sc wa.StateComputation, sb wa.StateBuilder, input, output string) *Library {
	step := &declaration.Step{Kind: declaration.StateComputation, Compute: sc, Place: declaration.Caller()}
	return l.offerState("OfferState", step, sc, sb, input, output)
}

// OfferStateMulti is OfferState for a computation with any number of results.
func (l *Library) OfferStateMulti(sc wa.StateComputationMulti, sb wa.StateBuilder, input, output string) *Library {
	step := &declaration.Step{Kind: declaration.StateComputationMulti, Multi: sc, Place: declaration.Caller()}
	return l.offerState("OfferStateMulti", step, sc, sb, input, output)
}

// ToJson ends the declaration and returns the library's offers. If something is wrong with the declaration it returns an
// object with the key "diagnostics" instead.
func (l *Library) ToJson() string { return launch.Text(l.declared) }

func (l *Library) offerState(method string, step *declaration.Step, sc interface{ Name() string }, sb wa.StateBuilder, input, output string) *Library {
	step.State = &declaration.State{Builder: sb, ByKey: true}
	l.declared.NewStateComputation(step, method, sc)
	return l.offer(method, step, input, output)
}

func (l *Library) offer(method string, step *declaration.Step, input, output string) *Library {
	if step.State != nil {
		step.State.Name = step.Name
	}
	l.declared.Offer(method, &declaration.Offer{Step: step, Input: input, Output: output})
	return l
}

package application

import (
	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/workermain"
)

// Library declares components that other programs, in Python or Go, use in their applications. A program whose setup
// returns the result of Library.ToJson has no application of its own. The applications that use its components start
// it.
//
//	library := application.MakeLibrary()
//	library.Offer(&ScoreBuilder{}, "json", "float64")
//	return library.ToJson()
//
// Messages between programs are written in codecs: "bytes" ([]byte), "string", "int64", "float64", "json" and
// "protobuf:FULL.NAME" (pointers to the generated type of that name). Inputs in "json" are nil, bool, string, int64,
// float64, []interface{} or map[string]interface{}. Outputs in "json" are any values that encoding/json can write.
type Library struct {
	declared *declaration.Application
}

// MakeLibrary begins the declaration of a library.
func MakeLibrary() *Library { return &Library{declaration.NewLibrary()} }

// Offer offers a computation under its name. builder is a wallarooapi.ComputationBuilder or a
// wallarooapi.ComputationMultiBuilder. input and output are the codecs of its input and output messages. Other
// builders are reported (T223), and so are unknown codecs and names that are already used (T207). Offer returns the
// library.
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

// OfferState offers a state computation under its name. sb builds the state of a new key. The state computation uses
// the key that a message carries.
func (l *Library) OfferState(sc wa.StateComputation, sb wa.StateBuilder, input, output string) *Library {
	return l.offerState("OfferState", declaration.StateComputation, sc, sb, input, output)
}

// OfferStateMulti is OfferState for a computation with any number of results.
func (l *Library) OfferStateMulti(sc wa.StateComputationMulti, sb wa.StateBuilder, input, output string) *Library {
	return l.offerState("OfferStateMulti", declaration.StateComputationMulti, sc, sb, input, output)
}

// ToJson ends the declaration and returns the library's offers. If the declaration has findings, it returns an object
// with the key "diagnostics" instead.
func (l *Library) ToJson() string { return workermain.Text(l.declared) }

func (l *Library) offerState(method, kind string, sc interface{ Name() string }, sb wa.StateBuilder, input, output string) *Library {
	step := &declaration.Step{Kind: kind, Place: declaration.Caller(), State: &declaration.State{Builder: sb, ByKey: true}}
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

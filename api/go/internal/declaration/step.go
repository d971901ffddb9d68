package declaration

import (
	"encoding/binary"
	"fmt"
	"reflect"

	wa "wallarooapi"
	"wallarooapi/internal/codec"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/known"
	"wallarooapi/internal/topology"
)

// NewSource checks the decoder or generator of a source, and sets the fields of the source that follow from it.
func (a *Application) NewSource(source *Source) {
	for _, found := range source.Found {
		a.Report(found, Pointer(source.Path), source.Place)
	}
	if len(source.Found) > 0 {
		return
	}
	switch edge := source.Edge.(type) {
	case *topology.TCP:
		a.newListener(source, edge)
	case *topology.Generator:
		if source.Generator, _ = source.Given.(Generator); source.Generator == nil {
			a.wrongSource(source, "generator", "InitialValue or Apply", "InitialValue() any and Apply(any) any")
		}
	default:
		if source.Decoder, _ = source.Given.(wa.Decoder); source.Decoder == nil {
			a.wrongSource(source, "decoder", "Decode", "Decode([]byte) interface{}")
		}
	}
}

func (a *Application) wrongSource(source *Source, what, method, signature string) {
	a.Report(diagnostic.Of("T223", "what", what, "type", typeName(source.Given), "method", method,
		"signature", signature), Pointer(source.Path), source.Place)
}

// newListener sets the decoder of a TCP source, and finds out its framing.
func (a *Application) newListener(source *Source, edge *topology.TCP) {
	if lines, ok := source.Given.(wa.LineDecoder); ok {
		source.Decoder, edge.Framing = lines, topology.Framing{Kind: topology.NewlineFraming}
		return
	}
	framed, ok := source.Given.(wa.FramedDecoder)
	if !ok || source.Given == nil {
		a.wrongSource(source, "decoder", "HeaderLength or PayloadLength",
			"HeaderLength() uint64, PayloadLength([]byte) uint64 and Decode([]byte) interface{}")
		return
	}
	length := framed.HeaderLength()
	if !topology.HeaderLengthIsUsable(length) {
		found := diagnostic.Wrong(fmt.Sprintf("source %q", source.Name), "HeaderLength", fmt.Sprint(length), "1 to 64 bytes",
			"return the number of bytes that stand before each payload")
		a.Report(found, Pointer(source.Path), source.Place)
		return
	}
	source.Decoder, source.Framed = framed, framed
	edge.Framing = topology.ProbeFraming(int(length), framed.PayloadLength)
}

// NewComputation sets the fields of a stateless step that follow from the builder of its computation.
func (a *Application) NewComputation(step *Step, method string, builder interface{ Build() interface{} }) {
	if builder == nil {
		a.wrongParameter(step, method, "builder", "nil", "a value with a method Build")
		return
	}
	built := builder.Build()
	signature, fits := "Compute(data interface{}) interface{}", false
	if step.Kind == ComputationMulti {
		signature = "Compute(data interface{}) []interface{}"
		_, fits = built.(wa.ComputationMulti)
		step.Build = func() Stateless { return multi{builder.Build().(wa.ComputationMulti)} }
	} else {
		_, fits = built.(wa.Computation)
		step.Build = func() Stateless { return single{builder.Build().(wa.Computation)} }
	}
	if fits {
		step.Name, step.Symbol, step.Outputs = built.(interface{ Name() string }).Name(), typeName(built), OutputsOf(built)
		return
	}
	a.Report(diagnostic.Of("T223", "what", "the result of Build of", "type", typeName(builder)+", "+typeName(built)+",",
		"method", signature, "signature", "Name() string and "+signature), Pointer(step.Path), step.Place)
}

// NewStateComputation sets the fields of a state step that follow from its computation.
func (a *Application) NewStateComputation(step *Step, method string, named interface{ Name() string }) {
	if named == nil {
		a.wrongParameter(step, method, "sc", "nil", "a state computation")
	} else {
		step.Name, step.Symbol, step.Outputs = named.Name(), typeName(named), OutputsOf(named)
		step.Stateful = FunctionsOf(named)
	}
	if step.State.Builder == nil {
		a.wrongParameter(step, method, "sb", "nil", "a state builder")
	} else {
		a.LearnState(step)
	}
	a.setPartition(step, method)
}

// LearnState builds a state to find out its type. It reports a state that cannot be changed in place or serialized, and
// a builder that returns one object for all keys.
func (a *Application) LearnState(step *Step) {
	built := step.State.Builder.Build()
	step.State.Class, step.State.Type, step.State.Shape = typeName(built), reflect.TypeOf(built), codec.Shape(reflect.TypeOf(built))
	if built == nil {
		a.wrongParameter(step, "Build of "+typeName(step.State.Builder), "result", "nil", "a state object")
		return
	}
	if reason := fixed(reflect.ValueOf(built)); reason != "" && step.Kind != Window {
		a.wrongParameter(step, "Build of "+typeName(step.State.Builder), "result", reason, "a pointer, or a map that is made: a state is changed in place")
		return
	}
	if isShared(reflect.ValueOf(built), reflect.ValueOf(step.State.Builder.Build())) {
		a.wrongParameter(step, "Build of "+typeName(step.State.Builder), "result", "the same "+typeName(built)+" for each key", "a new state in each call")
		return
	}
	known.Register(reflect.TypeOf(built))
	if wa.Serialize != nil {
		return
	}
	if err := codec.CheckState(reflect.TypeOf(built)); err != nil {
		a.Report(diagnostic.Of("C504", "step", step.Name, "type", step.State.Class, "error", err, "fix", codec.Remedy(err)),
			Pointer(step.Path, "state"), step.Place)
	}
}

// fixed returns the reason why a state cannot be changed in place, or "" if it can be changed.
func fixed(state reflect.Value) string {
	switch kind := state.Kind(); {
	case kind == reflect.Pointer || kind == reflect.Map:
		if state.IsNil() {
			return "a nil " + state.Type().String()
		}
	case state.Type().Size() > 0:
		return state.Type().String() + ", of which each call gets a copy"
	}
	return ""
}

// isShared reports whether two states are the same object.
func isShared(one, other reflect.Value) bool {
	isObject := one.Kind() == reflect.Map || one.Kind() == reflect.Pointer && one.Type().Elem().Size() > 0
	return isObject && one.Kind() == other.Kind() && !one.IsNil() && one.Pointer() == other.Pointer()
}

// setPartition sets the function that returns the key of a message, from the partition function of the program.
func (a *Application) setPartition(step *Step, method string) {
	switch function := step.Given.(type) {
	case wa.PartitionFunction:
		if function != nil {
			step.Partition = function.Partition
			return
		}
	case wa.PartitionFunctionU64:
		if function != nil {
			step.Partition = func(data any) []byte {
				return binary.BigEndian.AppendUint64(make([]byte, 0, 8), function.Partition(data))
			}
			return
		}
	}
	if step.Given == nil {
		a.wrongParameter(step, method, "pf", "nil", "a partition function")
		return
	}
	partition, ok := reflect.TypeOf(step.Given).MethodByName("Partition")
	if !ok {
		a.Report(diagnostic.Of("T223", "what", "partition function", "type", typeName(step.Given), "method", "Partition",
			"signature", "Partition(data interface{}) []byte"), Pointer(step.Path, "state"), step.Place)
		return
	}
	actual := "nothing"
	if partition.Type.NumOut() > 0 {
		actual = partition.Type.Out(0).String()
	}
	a.Report(diagnostic.Of("T208", "state", step.State.Name, "type", typeName(step.Given), "actual", actual,
		"expected", "[]byte or uint64"), Pointer(step.Path, "state"), step.Place)
}

func (a *Application) wrongParameter(step *Step, method, parameter, actual, expected string) {
	a.Wrong(Pointer(step.Path), step.Place, method, parameter, actual, expected)
}

// Symbolic is implemented by objects that contain a function of the program, so that findings name this function.
type Symbolic interface {
	// GoSymbol returns the name of the function.
	GoSymbol() string
}

// typeName returns the name by which the topology and findings refer to an object of the program.
func typeName(value any) string {
	if function, ok := value.(Symbolic); ok {
		return function.GoSymbol()
	}
	return fmt.Sprintf("%T", value)
}

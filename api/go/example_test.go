package wallarooapi_test

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"strings"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/known"
	"wallarooapi/internal/testdata/example"
)

// decoder decodes texts. Each text follows its length in 4 bytes.
type decoder struct{}

func (decoder) HeaderLength() uint64               { return 4 }
func (decoder) PayloadLength(header []byte) uint64 { return uint64(binary.BigEndian.Uint32(header)) }
func (decoder) Decode(payload []byte) interface{}  { return string(payload) }

// split is a computation that returns the words of a line.
type split struct{}

func (split) Name() string { return "split" }

func (split) Compute(data interface{}) (words []interface{}) {
	for _, word := range strings.Fields(data.(string)) {
		words = append(words, word)
	}
	return words
}

type splitBuilder struct{}

func (splitBuilder) Build() interface{} { return split{} }

// lower is a computation that returns words in lower case, and no numbers.
type lower struct{}

func (lower) Name() string { return "lower" }

func (lower) Compute(data interface{}) interface{} {
	if strings.Trim(data.(string), "0123456789") == "" {
		return nil
	}
	return strings.ToLower(data.(string))
}

type lowerBuilder struct{}

func (lowerBuilder) Build() interface{} { return lower{} }

// totals is the state of all words with the same first letter.
type totals struct{ Counts map[string]int }

type totalsBuilder struct{}

func (totalsBuilder) Build() interface{} { return &totals{map[string]int{}} }

type result struct {
	Word  string
	Count int
}

// count is a state computation that returns each word with its count so far.
type count struct{}

func (count) Name() string { return "count" }

func (count) Compute(data, state interface{}) (interface{}, bool) {
	word, counts := data.(string), state.(*totals).Counts
	counts[word]++
	return &result{word, counts[word]}, true
}

// milestones is a state computation with a result for each hundredth occurrence of a word, and another one for each
// thousandth.
type milestones struct{}

func (milestones) Name() string { return "milestones" }

func (milestones) Compute(data, state interface{}) (results []interface{}, persist bool) {
	next, persist := count{}.Compute(data, state)
	for _, step := range []int{100, 1000} {
		if next.(*result).Count%step == 0 {
			results = append(results, next)
		}
	}
	return results, persist
}

type firstLetter struct{}

func (firstLetter) Partition(data interface{}) []byte { return []byte(data.(string)[:1]) }

// length is a partition function in the form of Wallaroo 0.4.
type length struct{}

func (length) Partition(data interface{}) uint64 { return uint64(len(data.(string))) }

type encoder struct{}

func (encoder) Encode(d interface{}) []byte {
	return fmt.Appendf(nil, "%s => %d\n", d.(*result).Word, d.(*result).Count)
}

// record is an encoder for Kafka.
type record struct{}

func (record) Encode(d interface{}) (value, key []byte, partition int32) {
	return encoder{}.Encode(d), []byte(d.(*result).Word), -1
}

// pair is an encoder for Kafka in the form of Wallaroo 0.4.
type pair struct{}

func (pair) Encode(d interface{}) (value, key []byte) { return encoder{}.Encode(d), nil }

var (
	_ wa.Decoder                 = decoder{}
	_ wa.FramedDecoder           = decoder{}
	_ wa.ComputationMulti        = split{}
	_ wa.ComputationMultiBuilder = splitBuilder{}
	_ wa.Computation             = lower{}
	_ wa.ComputationBuilder      = lowerBuilder{}
	_ wa.StateBuilder            = totalsBuilder{}
	_ wa.StateComputation        = count{}
	_ wa.StateComputationMulti   = milestones{}
	_ wa.PartitionFunction       = firstLetter{}
	_ wa.PartitionFunctionU64    = length{}
	_ wa.Encoder                 = encoder{}
	_ wa.KafkaEncoder            = record{}
	_ wa.KafkaPairEncoder        = pair{}
)

func Example() {
	app := application.MakeApplication("Word Count")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", "7010", decoder{})).
		ToMulti(splitBuilder{}).
		To(lowerBuilder{}).
		ToStatePartition(count{}, totalsBuilder{}, "totals", firstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", encoder{}))
	example.Show(app.ToJson(), "sources", "framing.kind")
	example.Show(app.ToJson(), "steps", "kind", "name")
	// Output:
	// u32be
	// computation_multi split
	// computation lower
	// state_computation count
}

func ExampleFramedDecoder() {
	frame := []byte("\x00\x00\x00\x05to be")
	header := frame[:decoder{}.HeaderLength()]
	fmt.Println(decoder{}.PayloadLength(header), decoder{}.Decode(frame[4:]))
	// Output: 5 to be
}

// lines is a decoder of messages that are lines, for application.MakeTCPSourceConfig.
type lines struct{}

func (lines) DecodesLines() {}

func (lines) Decode(line []byte) interface{} { return string(line) }

func ExampleLineDecoder() {
	var decoder wa.LineDecoder = lines{}
	fmt.Println(decoder.Decode([]byte("to be")))
	// Output: to be
}

func ExampleComputation() {
	fmt.Println(lower{}.Compute("To"), lower{}.Compute("2"))
	// Output: to <nil>
}

func ExampleComputationMulti() {
	fmt.Println(split{}.Compute("to be"), len(split{}.Compute(" ")))
	// Output: [to be] 0
}

func ExampleStateComputation() {
	state := totalsBuilder{}.Build()
	for _, word := range []string{"be", "be", "but"} {
		next, persist := count{}.Compute(word, state)
		fmt.Println(*next.(*result), persist)
	}
	// Output:
	// {be 1} true
	// {be 2} true
	// {but 1} true
}

func ExampleStateComputationMulti() {
	state := &totals{map[string]int{"be": 98, "but": 999}}
	for _, word := range []string{"be", "be", "but"} {
		results, persist := milestones{}.Compute(word, state)
		fmt.Println(len(results), persist)
	}
	// Output:
	// 0 true
	// 1 true
	// 2 true
}

func ExamplePartitionFunction() {
	fmt.Printf("%q %d\n", firstLetter{}.Partition("be"), length{}.Partition("be"))
	// Output: "b" 2
}

func ExampleKafkaEncoder() {
	value, key, partition := record{}.Encode(&result{"be", 2})
	fmt.Printf("%q %q %d\n", value, key, partition)
	value, key = pair{}.Encode(&result{"be", 2})
	fmt.Printf("%q %q\n", value, key)
	// Output:
	// "be => 2\n" "be" -1
	// "be => 2\n" ""
}

func ExampleProgram() {
	scorer := wa.OtherProgram("scorer", "scorer.py")
	for _, component := range []*wa.RemoteComponent{
		scorer.Computation("score", "json", "float64"),
		scorer.ComputationMulti("split", "string", "string"),
		scorer.StateComputation("mean", "float64", "float64"),
		scorer.StateComputationMulti("outliers", "float64", "float64"),
	} {
		fmt.Println(component.Kind, component.Name, component.Build() == component)
	}
	// Output:
	// computation score true
	// computation_multi split true
	// state_computation mean true
	// state_computation_multi outliers true
}

// Args contains the arguments of the application, without the options of the runtime.
func ExampleArgs() {
	defer func(before []string) { wa.Args = before }(wa.Args)
	wa.Args = []string{"words", "--in", "127.0.0.1:7010"}
	options := flag.NewFlagSet(wa.Args[0], flag.ContinueOnError)
	in := options.String("in", "", "where to listen")
	fmt.Println(options.Parse(wa.Args[1:]), *in)
	// Output: <nil> 127.0.0.1:7010
}

// A message type of another package, here of the standard library, must be registered.
func ExampleRegisterType() {
	wa.RegisterType(url.URL{})
	kind, isKnown := known.Lookup("net/url.URL")
	fmt.Println(kind, isKnown)
	// Output: url.URL true
}

// A program may have its own serialization. Here the first byte distinguishes messages from states.
func ExampleSerialize() {
	defer func() { wa.Serialize, wa.Deserialize = nil, nil }()
	wa.Serialize = func(data interface{}) []byte {
		if word, is := data.(string); is {
			return append([]byte{'m'}, word...)
		}
		text, _ := json.Marshal(data)
		return append([]byte{'s'}, text...)
	}
	wa.Deserialize = func(b []byte) interface{} {
		if b[0] == 'm' {
			return string(b[1:])
		}
		state := &totals{}
		if err := json.Unmarshal(b[1:], state); err != nil {
			panic(err)
		}
		return state
	}
	written := wa.Serialize(&totals{map[string]int{"be": 2}})
	fmt.Printf("%s\n", written)
	fmt.Println(*wa.Deserialize(written).(*totals))
	// Output:
	// s{"Counts":{"be":2}}
	// {map[be:2]}
}

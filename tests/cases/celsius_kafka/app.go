package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	wa.Serialize = Serialize
	wa.Deserialize = Deserialize

	application := app.MakeApplication("Celsius to Fahrenheit with Kafka")
	application.NewPipeline("Celsius Conversion", app.MakeKafkaSourceConfig("kafka_source", &Decoder{})).
		To(&MultiplyBuilder{}).
		To(&AddBuilder{}).
		ToSink(app.MakeKafkaSinkConfig("kafka_sink", &Encoder{}))

	return C.CString(application.ToJson())
}

type Decoder struct{}

// Decode takes what is no number for 0; spaces around a number do not count.
func (d *Decoder) Decode(b []byte) interface{} {
	degrees, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		fmt.Printf("not a number: %q\n", b)
		return 0.0
	}
	return degrees
}

type MultiplyBuilder struct{}

func (mb *MultiplyBuilder) Build() interface{} {
	return &Multiply{}
}

type Multiply struct{}

func (m *Multiply) Name() string {
	return "multiply by 1.8"
}

func (m *Multiply) Compute(data interface{}) interface{} {
	return data.(float64) * 1.8
}

type AddBuilder struct{}

func (ab *AddBuilder) Build() interface{} {
	return &Add{}
}

type Add struct{}

func (a *Add) Name() string {
	return "add 32"
}

func (a *Add) Compute(data interface{}) interface{} {
	return data.(float64) + 32
}

type Encoder struct{}

// Encode gives a record without a key, and leaves the partition to Kafka.
func (e *Encoder) Encode(data interface{}) ([]byte, []byte, int32) {
	return []byte(fmt.Sprintf("%.6f", data.(float64))), nil, -1
}

func Serialize(c interface{}) []byte {
	return binary.BigEndian.AppendUint64(nil, math.Float64bits(c.(float64)))
}

func Deserialize(buff []byte) interface{} {
	return math.Float64frombits(binary.BigEndian.Uint64(buff))
}

func main() {}

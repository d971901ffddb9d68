package main

import (
	"fmt"

	"C"

	wa "wallarooapi"
	app "wallarooapi/application"
)

//export ApplicationSetup
func ApplicationSetup() *C.char {
	wa.Serialize = Serialize
	wa.Deserialize = Deserialize

	application := app.MakeApplication("Reverse Word with Kafka")
	application.NewPipeline("Reverse", app.MakeKafkaSourceConfig("kafka_source", &Decoder{})).
		To(&ReverseBuilder{}).
		ToSink(app.MakeKafkaSinkConfig("kafka_sink", &Encoder{}))

	return C.CString(application.ToJson())
}

// Decoder has the methods of a TCP source's too; for a record only Decode is called.
type Decoder struct{}

func (d *Decoder) HeaderLength() uint64 {
	return 4
}

func (d *Decoder) PayloadLength(b []byte) uint64 {
	return uint64(len(b))
}

func (d *Decoder) Decode(b []byte) interface{} {
	word := string(b)
	return &word
}

type ReverseBuilder struct{}

func (rb *ReverseBuilder) Build() interface{} {
	return &Reverse{}
}

type Reverse struct{}

func (r *Reverse) Name() string {
	return "reverse"
}

// Compute returns a string, which Serialize below does not know: the message is never serialized.
func (r *Reverse) Compute(data interface{}) interface{} {
	runes := []rune(*(data.(*string)))
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}

type Encoder struct{}

// Encode gives a record without a key, and leaves the partition to Kafka.
func (e *Encoder) Encode(data interface{}) ([]byte, []byte, int32) {
	return []byte(data.(string)), nil, -1
}

func Serialize(c interface{}) []byte {
	switch t := c.(type) {
	case *string:
		return []byte(*t)
	default:
		fmt.Println("SERIALIZE MISSED A CASE")
		return nil
	}
}

func Deserialize(buff []byte) interface{} {
	word := string(buff)
	return &word
}

func main() {}

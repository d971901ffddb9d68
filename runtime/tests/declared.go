// Command declared reads methods and topics as JSON and prints, for each, the document of an application that declares it.
package main

import (
	"encoding/json"
	"os"

	"wallarooapi/stream"
)

// application declares a topic by a method that takes one.
func application(method string, topic stream.Kafka) *stream.Application {
	app := stream.New("drawn")
	text := stream.Value(stream.Text.Decode)
	from := stream.From(app, "lines", stream.TCPSource("127.0.0.1:7010", stream.U32BE, stream.Text.Decode))
	switch method {
	case "KafkaSource":
		stream.From(app, "topic", stream.KafkaSource(topic, text)).Done()
	case "KafkaRecordSource":
		stream.From(app, "topic", stream.KafkaRecordSource(topic)).Done()
	}
	sink := stream.TCPSink("127.0.0.1:7002", func(text string) ([]byte, error) { return []byte(text), nil })
	switch method {
	case "KafkaSink":
		sink = stream.KafkaSink(topic, func(text string) (stream.Record, error) { return stream.Record{Value: []byte(text)}, nil })
	case "KafkaRecordSink":
		sink = stream.KafkaRecordSink(topic, func(text string) (stream.KafkaRecord, error) { return stream.KafkaRecord{Value: []byte(text)}, nil })
	}
	from.To(sink)
	return app
}

func main() {
	var drawn []struct {
		Method string
		Topic  stream.Kafka
	}
	if err := json.NewDecoder(os.Stdin).Decode(&drawn); err != nil {
		panic(err)
	}
	documents := []json.RawMessage{}
	for _, each := range drawn {
		documents = append(documents, json.RawMessage(application(each.Method, each.Topic).ToJson()))
	}
	if err := json.NewEncoder(os.Stdout).Encode(documents); err != nil {
		panic(err)
	}
}

package application_test

import (
	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/testdata/example"
)

// record is an encoder for Kafka in the form of Wallaroo 0.5. It returns value, key and partition.
type record struct{}

func (record) Encode(data interface{}) ([]byte, []byte, int32) {
	return []byte(data.(string)), []byte(data.(string)[:1]), -1
}

// oldRecord is an encoder for Kafka in the form of Wallaroo 0.4. It returns value and key.
type oldRecord struct{}

func (oldRecord) Encode(data interface{}) ([]byte, []byte) { return []byte(data.(string)), nil }

// shouted returns an application that reads words from a source and writes them in capitals to a sink.
func shouted(source application.SourceConfig, sink application.SinkConfig) *application.Application {
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", source).To(shout{}).ToSink(sink)
	return app
}

func ExampleTCPSourceConfig() {
	source := application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{}).OnError("fail")
	example.Show(shouted(source, texts).ToJson(), "sources", "kind", "port", "framing", "on_error")
	example.Show(shouted(application.MakeTCPSourceConfig("127.0.0.1", "7010", textLines{}), texts).ToJson(), "sources", "framing")
	// Output:
	// tcp 7010 map[kind:u32be] fail
	// map[kind:newline]
}

// textLines is a decoder of messages that are lines.
type textLines struct{}

func (textLines) DecodesLines() {}

func (textLines) Decode(line []byte) interface{} { return string(line) }

func ExampleTCPSinkConfig() {
	sink := application.MakeTCPSinkConfig("127.0.0.1", "7002", textEncoder{}).OnError("fail")
	example.Show(shouted(lines, sink).ToJson(), "sinks", "kind", "port", "on_error")
	// Output: tcp 7002 fail
}

// In the form of Wallaroo 0.5, the command line names topic and brokers.
func ExampleMakeKafkaSourceConfig() {
	defer func(before []string) { wa.Args = before }(wa.Args)
	wa.Args = []string{"words", "--in_topic", "words", "--in_brokers", "kafka1:9092,kafka2:9092", "--in_consumer_offset_default", "END"}
	source := application.MakeKafkaSourceConfig("in", textDecoder{}).OnError("fail")
	example.Show(shouted(source, texts).ToJson(), "sources", "kind", "topic", "brokers", "start", "on_error")
	// Missing arguments are reported.
	example.Show(shouted(application.MakeKafkaSourceConfig("more", textDecoder{}), texts).ToJson(), "sources")
	// Output:
	// kafka words [kafka1:9092 kafka2:9092] end fail
	// T240 source "more": option --more_topic is missing; expected a name of 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_', '-'; fix: give it, e.g. --more_topic TOPIC
	// T240 source "more": option --more_brokers is missing; expected HOST:PORT,...; fix: give it, e.g. --more_brokers 127.0.0.1:9092
}

// In the form of Wallaroo 0.5, the command line names topic and brokers.
func ExampleMakeKafkaSinkConfig() {
	defer func(before []string) { wa.Args = before }(wa.Args)
	wa.Args = []string{"words", "--out_topic", "shouted", "--out_brokers", "kafka1:9092", "--out_produce_acks", "-1"}
	sink := application.MakeKafkaSinkConfig("out", record{}).OnError("fail")
	example.Show(shouted(lines, sink).ToJson(), "sinks", "kind", "topic", "options", "on_error")
	// Output: kafka shouted map[kafka.acks:-1] fail
}

// In the form of Wallaroo 0.4, the program itself contains topic and brokers.
func ExampleMakeKafkaHostPort() {
	brokers := []*application.KafkaHostPort{application.MakeKafkaHostPort("kafka1", 9092)}
	source := application.MakeKafkaSourceConfig("words", brokers, "Warn", textDecoder{})
	sink := application.MakeKafkaSinkConfig("shouted", brokers, "Warn", 5, 1_000_000, oldRecord{})
	app := shouted(source, sink)
	example.Show(app.ToJson(), "sources", "kind", "topic", "brokers", "start")
	example.Show(app.ToJson(), "sinks", "kind", "topic", "options")
	// Output:
	// kafka words [kafka1:9092] start
	// kafka shouted map[kafka.linger.ms:5 kafka.max.request.size:1000000]
}

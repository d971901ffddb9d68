package stream_test

import (
	"strings"
	"testing"

	"wallarooapi/stream"
)

// If a program changes settings after it has declared a source or sink with them, the change has no effect.
func TestSettingsAreCopied(t *testing.T) {
	options, create := map[string]string{"path": "/in"}, map[string]string{"cleanup.policy": "compact"}
	topic := stream.Kafka{Topic: "in", Brokers: []string{"h:1"}, Options: map[string]string{"kafka.client.id": "first"},
		Create: &stream.TopicCreation{Partitions: 2, Options: create}}
	app := stream.New("Settings")
	texts := stream.From(app, "files", stream.SparkSource(stream.Spark{Format: "text", Options: options, Value: "value"}, stream.Value(stream.Text.Decode)))
	records := stream.From(app, "records", stream.KafkaSource(topic, stream.Value(stream.Text.Decode)))
	options["path"], topic.Options["kafka.client.id"], topic.Brokers[0], create["cleanup.policy"], topic.Create.Partitions = "/out", "second", "h:2", "delete", 3
	stream.Merge(texts, records).To(stream.SparkSink(stream.Spark{Format: "text", Options: options, Value: "value"}, func(text string) (stream.Record, error) {
		return stream.Record{Value: []byte(text)}, nil
	}))
	clear(options)
	document := app.ToJson()
	for _, part := range []string{`"/in"`, `"/out"`, `"first"`, `"h:1"`, `"compact"`, `"partitions": 2`} {
		if !strings.Contains(document, part) {
			t.Errorf("%s is missing in %s", part, document)
		}
	}
}

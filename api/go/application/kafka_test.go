package application_test

import (
	"encoding/json"
	"strings"
	"testing"

	wa "wallarooapi"
	app "wallarooapi/application"
)

type textDecoder struct{}

func (textDecoder) Decode(b []byte) interface{} { return string(b) }

type recordEncoder struct{}

func (recordEncoder) Encode(d interface{}) ([]byte, []byte, int32) { return []byte(d.(string)), nil, 3 }

type pairEncoder struct{}

func (pairEncoder) Encode(d interface{}) ([]byte, []byte) { return []byte(d.(string)), []byte("k") }

// withArgs sets the application's arguments during a test.
func withArgs(t *testing.T, args ...string) {
	before := wa.Args
	t.Cleanup(func() { wa.Args = before })
	wa.Args = append([]string{"program"}, args...)
}

type kafkaPart struct {
	Kind, Topic, Start string
	Brokers            []string
	Partitions         []struct {
		Number int
		Start  string
	}
	Options map[string]string

	ExactlyOnce bool `json:"exactly_once"`
}

func kafkaParts(t *testing.T, source *app.KafkaSourceConfig, sink *app.KafkaSinkConfig) (kafkaPart, kafkaPart, error) {
	t.Helper()
	application := app.MakeApplication("a")
	application.NewPipeline("p", source).ToMulti(split{}).ToSink(sink)
	if err := application.Check(); err != nil {
		return kafkaPart{}, kafkaPart{}, err
	}
	var document struct {
		Pipelines []struct{ Sources, Sinks []kafkaPart }
	}
	if err := json.Unmarshal([]byte(application.ToJson()), &document); err != nil {
		t.Fatal(err)
	}
	return document.Pipelines[0].Sources[0], document.Pipelines[0].Sinks[0], nil
}

func shown(t *testing.T, part kafkaPart) string {
	t.Helper()
	text, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestKafkaOfWallaroo05ReadsTheArguments(t *testing.T) {
	withArgs(t, "--kafka_source_topic", "in", "--kafka_source_brokers=h1,h2:1234,[::1],[fe80::1]:7", "--kafka_source_partitions", "0,2:5,7:END",
		"--kafka_source_consumer_offset_default", "-3", "--kafka_source_consumer_check_crc", "--kafka_source_fetch_interval", "2000000",
		"--kafka_sink_topic", "out", "--kafka_sink_brokers", "127.0.0.1:9092", "--kafka_sink_max_message_size", "100000",
		"--kafka_sink_max_produce_buffer_ms", "10", "--kafka_sink_produce_acks", "-1", "--kafka_sink_log_level", "Info",
		"--kafka_sink_exactly_once")
	source, sink, err := kafkaParts(t, app.MakeKafkaSourceConfig("kafka_source", textDecoder{}), app.MakeKafkaSinkConfig("kafka_sink", recordEncoder{}))
	if err != nil {
		t.Fatal(err)
	}
	const wantSource = `{"Kind":"kafka","Topic":"in","Start":"-3","Brokers":["h1:9092","h2:1234","[::1]:9092","[fe80::1]:7"],` +
		`"Partitions":[{"Number":0,"Start":""},{"Number":2,"Start":"5"},{"Number":7,"Start":"end"}],` +
		`"Options":{"kafka.check.crcs":"true","kafka.fetch.max.wait.ms":"2"},"exactly_once":false}`
	if got := shown(t, source); got != wantSource {
		t.Errorf("the source is\n%s\nwant\n%s", got, wantSource)
	}
	const wantSink = `{"Kind":"kafka","Topic":"out","Start":"","Brokers":["127.0.0.1:9092"],"Partitions":null,` +
		`"Options":{"kafka.acks":"-1","kafka.linger.ms":"10","kafka.max.request.size":"100000"},"exactly_once":true}`
	if got := shown(t, sink); got != wantSink {
		t.Errorf("the sink is\n%s\nwant\n%s", got, wantSink)
	}
}

func TestKafkaOfWallaroo04StandsInTheProgram(t *testing.T) {
	brokers := []*app.KafkaHostPort{app.MakeKafkaHostPort("127.0.0.1", 9092)}
	source, sink, err := kafkaParts(t, app.MakeKafkaSourceConfig("in", brokers, "Warn", textDecoder{}),
		app.MakeKafkaSinkConfig("out", brokers, "Fine", uint64(5), 1000, pairEncoder{}).ExactlyOnce())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shown(t, source), `{"Kind":"kafka","Topic":"in","Start":"start","Brokers":["127.0.0.1:9092"],"Partitions":null,"Options":{},"exactly_once":false}`; got != want {
		t.Errorf("the source is\n%s\nwant\n%s", got, want)
	}
	if got, want := shown(t, sink), `{"Kind":"kafka","Topic":"out","Start":"","Brokers":["127.0.0.1:9092"],"Partitions":null,`+
		`"Options":{"kafka.linger.ms":"5","kafka.max.request.size":"1000"},"exactly_once":true}`; got != want {
		t.Errorf("the sink is\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsWrongWithKafka(t *testing.T) {
	withArgs(t, "--bad_topic", "in", "--bad_brokers", "h:x", "--bad_partitions", "one", "--bad_produce_acks", "all")
	brokers := []*app.KafkaHostPort{app.MakeKafkaHostPort("127.0.0.1", 99999)}
	_, _, err := kafkaParts(t, app.MakeKafkaSourceConfig("bad", textDecoder{}), app.MakeKafkaSinkConfig("none", pairEncoder{}))
	_, _, second := kafkaParts(t, app.MakeKafkaSourceConfig("t", brokers, "Loud", textDecoder{}), app.MakeKafkaSinkConfig("bad", textDecoder{}))
	_, _, third := kafkaParts(t, app.MakeKafkaSourceConfig("t"), app.MakeKafkaSinkConfig("t", 1, 2, 3, 4, pairEncoder{}))
	var text string
	for _, one := range []error{err, second, third} {
		if one == nil {
			t.Fatal("nothing was found")
		}
		text += one.Error() + "\n"
	}
	for _, want := range []string{
		`T240 source "bad": option --bad_brokers is "h:x"; expected HOST:PORT,...`,
		"fix: give it, e.g. --bad_brokers 127.0.0.1:9092",
		`T240 source "bad": option --bad_partitions is "one"; expected NUMBER or NUMBER:OFFSET, ...`,
		`T240 sink "none": option --none_topic is missing; expected a name of 1 to 249 of`,
		`T240 sink "bad": option --bad_produce_acks is "all"; expected -1, 0 or 1`,
		`T211 broker address "127.0.0.1:99999" is not usable; "99999" is no port`,
		`T207 MakeKafkaSourceConfig: parameter logLevel is "Loud"; expected Fine, Info, Warn or Error`,
		"T223 encoder application_test.textDecoder has no method Encode",
		"T207 MakeKafkaSourceConfig: parameter rest is (); expected (name, decoder) or (topic, brokers, logLevel, decoder)",
		"T207 MakeKafkaSinkConfig: parameter rest is (int, int); expected brokers []*KafkaHostPort and logLevel string after the topic",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\ndoes not have\n%s", text, want)
		}
	}
}

type split struct{}

func (split) Build() interface{}                     { return split{} }
func (split) Name() string                           { return "split" }
func (split) Compute(data interface{}) []interface{} { return []interface{}{data} }

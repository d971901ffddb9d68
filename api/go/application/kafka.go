package application

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	wa "wallarooapi"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/kafka"
	"wallarooapi/internal/topology"
)

// KafkaHostPort is the address of a Kafka broker.
type KafkaHostPort struct {
	Host string
	Port uint64
}

// MakeKafkaHostPort describes the address of a broker, e.g. "127.0.0.1" and 9092.
//
// Source: Wallaroo 0.4.
func MakeKafkaHostPort(host string, port uint64) *KafkaHostPort { return &KafkaHostPort{host, port} }

// KafkaSourceConfig is a source that reads a Kafka topic. Its messages carry the keys of the records.
type KafkaSourceConfig struct{ declaredSource }

// KafkaSinkConfig is a sink that writes to a Kafka topic.
type KafkaSinkConfig struct {
	declaredSink
	edge *topology.Kafka
}

// MakeKafkaSourceConfig describes a source that reads a topic. It has two forms:
//
//	MakeKafkaSourceConfig(name string, decoder wa.Decoder)
//	MakeKafkaSourceConfig(topic string, brokers []*KafkaHostPort, logLevel string, decoder wa.Decoder)
//
// The first form is that of Wallaroo 0.5. The application's arguments describe the topic. --NAME_topic and
// --NAME_brokers (HOST:PORT,...) are required. --NAME_partitions (0,1:END), --NAME_consumer_offset_default (START,
// END, an offset, or -n for n records before the end) and client settings such as --NAME_min_fetch_bytes are optional.
// By default, reading begins at the start of the topic.
//
// The second form is that of Wallaroo 0.4. The program itself contains topic and brokers. logLevel is Fine, Info, Warn
// or Error and has no effect. The decoder gets a record's value. Missing or wrong arguments are reported (T240), and
// so are wrong parameters (T207), brokers (T211) and decoders (T223).
func MakeKafkaSourceConfig(nameOrTopic string, rest ...interface{}) *KafkaSourceConfig {
	c := &KafkaSourceConfig{}
	switch len(rest) {
	case 1:
		edge, found := kafka.Source(nameOrTopic, declaration.Arguments())
		c.declared = declaration.Source{Edge: edge, Given: rest[0], Found: found}
	case 3:
		edge, found := kafkaEdge("MakeKafkaSourceConfig", nameOrTopic, rest[0], rest[1])
		edge.Start = "start"
		c.declared = declaration.Source{Edge: edge, Given: rest[2], Found: found}
	default:
		c.declared = declaration.Source{Edge: &topology.Kafka{}, Found: wrongForm("MakeKafkaSourceConfig", rest,
			"(name, decoder) or (topic, brokers, logLevel, decoder)")}
	}
	return c
}

// MakeKafkaSinkConfig describes a sink that writes to a topic. It has two forms:
//
//	MakeKafkaSinkConfig(name string, encoder wa.KafkaEncoder)
//	MakeKafkaSinkConfig(topic string, brokers []*KafkaHostPort, logLevel string, maxProduceBufferMs, maxMessageSize uint64, encoder)
//
// The first form is that of Wallaroo 0.5. The application's arguments describe the topic. --NAME_topic and
// --NAME_brokers are required. --NAME_exactly_once, which has no value, and client settings such as
// --NAME_max_message_size and --NAME_produce_acks are optional. The second form is that of Wallaroo 0.4. The program
// itself contains topic and brokers. In both forms, encoder is a wallarooapi.KafkaEncoder or a
// wallarooapi.KafkaPairEncoder. maxProduceBufferMs is the number of milliseconds for which a record may wait for
// others, to be sent together. maxMessageSize is the maximum number of bytes of a request. Findings are as for
// MakeKafkaSourceConfig.
func MakeKafkaSinkConfig(nameOrTopic string, rest ...interface{}) *KafkaSinkConfig {
	c := &KafkaSinkConfig{}
	switch len(rest) {
	case 1:
		edge, found := kafka.Sink(nameOrTopic, declaration.Arguments())
		c.declared, c.edge = declaration.Sink{Edge: edge, Found: found}, edge
	case 5:
		edge, found := kafkaEdge("MakeKafkaSinkConfig", nameOrTopic, rest[0], rest[1])
		buffer, first := unsigned(rest[2])
		size, second := unsigned(rest[3])
		if !first || !second {
			found = append(found, wrongForm("MakeKafkaSinkConfig", rest, "numbers as maxProduceBufferMs and maxMessageSize")...)
		}
		edge.Options = kafka.SinkSettings(buffer, size)
		c.declared, c.edge = declaration.Sink{Edge: edge, Found: found}, edge
	default:
		c.edge = &topology.Kafka{}
		c.declared = declaration.Sink{Edge: c.edge, Found: wrongForm("MakeKafkaSinkConfig", rest,
			"(name, encoder) or (topic, brokers, logLevel, maxProduceBufferMs, maxMessageSize, encoder)")}
		return c
	}
	c.setEncoder(rest[len(rest)-1])
	return c
}

// setEncoder sets the encoder, a wallarooapi.KafkaEncoder or a wallarooapi.KafkaPairEncoder. It reports any other type
// (T223).
func (c *KafkaSinkConfig) setEncoder(given any) {
	c.declared.Given, c.declared.HasKeys = given, true
	switch encoder := given.(type) {
	case wa.KafkaEncoder:
		c.declared.Encode = encoder.Encode
	case wa.KafkaPairEncoder:
		c.declared.Encode = func(data any) (value, key []byte, partition int32) {
			value, key = encoder.Encode(data)
			return value, key, -1
		}
	default:
		c.declared.Found = append(c.declared.Found, diagnostic.Of("T223", "what", "encoder", "type", fmt.Sprintf("%T", given),
			"method", "Encode", "signature", "Encode(interface{}) ([]byte, []byte, int32)"))
	}
}

// OnError sets the policy for records on which the decoder fails: "dead_letter" or "fail" (see Application.OnError).
// The default is the application's policy. OnError returns the config.
func (c *KafkaSourceConfig) OnError(policy string) *KafkaSourceConfig {
	c.declared.OnError = policy
	return c
}

// OnError sets the policy for messages on which the encoder fails: "dead_letter" or "fail" (see Application.OnError).
// The default is the application's policy. OnError returns the config.
func (c *KafkaSinkConfig) OnError(policy string) *KafkaSinkConfig {
	c.declared.OnError = policy
	return c
}

// ExactlyOnce writes records in transactions. Readers of committed records (isolation.level=read_committed) then see
// each record exactly once, even after the failure of any process. Without it, no record is lost, but records may be
// repeated after a kill. ExactlyOnce returns the config.
func (c *KafkaSinkConfig) ExactlyOnce() *KafkaSinkConfig {
	c.edge.ExactlyOnce = true
	return c
}

// kafkaEdge returns the topology's description of a topic, made from the arguments of Wallaroo 0.4, and findings about
// wrong arguments.
func kafkaEdge(method, topic string, brokers, level any) (*topology.Kafka, []diagnostic.Diagnostic) {
	edge := &topology.Kafka{Topic: topic}
	addresses, isList := brokers.([]*KafkaHostPort)
	name, isText := level.(string)
	if !isList || !isText {
		return edge, wrongForm(method, []any{brokers, level}, "brokers []*KafkaHostPort and logLevel string after the topic")
	}
	found := kafka.CheckLevel(method, name)
	if topic == "" || len(addresses) == 0 {
		found = append(found, wrongForm(method, []any{brokers, level}, "a topic and at least one broker")...)
	}
	for _, address := range addresses {
		if address == nil {
			found = append(found, diagnostic.Wrong(method, "brokers", "a list with a nil address", "addresses that are not nil"))
			continue
		}
		port := strconv.FormatUint(address.Port, 10)
		if _, fault := topology.Address(address.Host, port); fault != "" {
			found = append(found, diagnostic.Of("T211", "what", "broker", "value", diagnostic.Shown(address.Host+":"+port), "reason", fault))
		}
		edge.Brokers = append(edge.Brokers, net.JoinHostPort(address.Host, port))
	}
	return edge, found
}

// wrongForm returns a finding (T207): the arguments after the first have wrong types or values.
func wrongForm(method string, given []any, expected string) []diagnostic.Diagnostic {
	types := make([]string, len(given))
	for i, value := range given {
		types[i] = fmt.Sprintf("%T", value)
	}
	return []diagnostic.Diagnostic{diagnostic.Wrong(method, "rest", "("+strings.Join(types, ", ")+")", expected)}
}

// unsigned converts a uint64 or an int to uint64. It accepts int, because untyped constants arrive as int.
func unsigned(value any) (uint64, bool) {
	switch number := value.(type) {
	case uint64:
		return number, true
	case int:
		return uint64(number), number >= 0
	}
	return 0, false
}

// Package kafka reads the command-line options with which programs of Wallaroo's own API describe their Kafka topics,
// e.g. --in_topic and --in_brokers.
package kafka

import (
	"cmp"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

// kind describes the valid values of an option.
type kind struct {
	expected string
	example  string
	pattern  *regexp.Regexp
}

// broker matches host and port of one broker. An IPv6 address is in brackets.
var broker = regexp.MustCompile(`(\[[^][,]+\]|[^][,:]+)(?::([0-9]+))?`)

var (
	topic  = kind{topology.TopicNames, "TOPIC", topology.TopicPattern}
	number = kind{"a number", "1000", regexp.MustCompile(`^(0|[1-9][0-9]*)$`)}
	level  = kind{"Fine, Info, Warn or Error", "Warn", regexp.MustCompile(`^(Fine|Info|Warn|Error)$`)}
	acks   = kind{"-1, 0 or 1", "-1", regexp.MustCompile(`^(-1|0|1)$`)}
	packer = kind{"gzip, snappy, lz4 or none", "lz4", regexp.MustCompile(`^(gzip|snappy|lz4|none)$`)}
	offset = kind{"START, END or a number", "START", regexp.MustCompile(`^(START|END|0|-?[1-9][0-9]*)$`)}
	hosts  = kind{"HOST:PORT,...", "127.0.0.1:9092", regexp.MustCompile("^" + broker.String() + "(," + broker.String() + ")*$")}
	parts  = kind{"NUMBER or NUMBER:OFFSET, ...", "0,1:END",
		regexp.MustCompile(`^[0-9]{1,9}(:(START|END|0|-?[1-9][0-9]*))?(,[0-9]{1,9}(:(START|END|0|-?[1-9][0-9]*))?)*$`)}
)

// option describes one command-line option. setting is the setting of Kafka's client that it becomes, or empty if this
// package evaluates the option itself.
type option struct {
	name    string
	kind    kind
	setting string
}

var sourceOptions = []option{
	{"topic", topic, ""},
	{"brokers", hosts, ""},
	{"log_level", level, ""},
	{"consumer_offset_default", offset, ""},
	{"offset_default", offset, ""},
	{"partitions", parts, ""},
	{"consumer_fetch_interval", number, fetchWait},
	{"fetch_interval", number, fetchWait},
	{"consumer_min_fetch_bytes", number, "kafka.fetch.min.bytes"},
	{"min_fetch_bytes", number, "kafka.fetch.min.bytes"},
	{"consumer_max_fetch_bytes", number, "kafka.fetch.max.bytes"},
	{"max_fetch_bytes", number, "kafka.fetch.max.bytes"},
	{"consumer_partition_fetch_max_bytes", number, "kafka.max.partition.fetch.bytes"},
	{"partition_fetch_max_bytes", number, "kafka.max.partition.fetch.bytes"},
}

var sinkOptions = []option{
	{"topic", topic, ""},
	{"brokers", hosts, ""},
	{"log_level", level, ""},
	{"produce_timeout_ms", number, "kafka.request.timeout.ms"},
	{"max_produce_buffer_ms", number, linger},
	{"max_produce_message_size", number, messageSize},
	{"max_message_size", number, messageSize},
	{"max_inflight_requests", number, "kafka.max.in.flight.requests.per.connection"},
	{"produce_acks", acks, "kafka.acks"},
	{"producer_compression", packer, "kafka.compression.type"},
}

// These settings need a conversion, or parameters of Wallaroo 0.4 also set them.
const (
	fetchWait   = "kafka.fetch.max.wait.ms"
	linger      = "kafka.linger.ms"
	messageSize = "kafka.max.request.size"
	checkCRC    = "consumer_check_crc"
)

// Source reads the options --NAME_topic, --NAME_brokers and so on of a source.
func Source(name string, args []string) (*topology.Kafka, []diagnostic.Diagnostic) {
	values, found := read("source", name, args, sourceOptions)
	start := cmp.Or(values["consumer_offset_default"], values["offset_default"], "start")
	edge := &topology.Kafka{Start: strings.ToLower(start)}
	edge.Topic, edge.Brokers, edge.Options = values["topic"], brokers(values["brokers"]), settings(values, sourceOptions)
	for _, item := range strings.Split(values["partitions"], ",") {
		digits, start, _ := strings.Cut(item, ":")
		if number, err := strconv.Atoi(digits); err == nil {
			edge.Partitions = append(edge.Partitions, topology.Partition{Number: number, Start: strings.ToLower(start)})
		}
	}
	if slices.Contains(args, "--"+name+"_"+checkCRC) {
		edge.Options["kafka.check.crcs"] = "true"
	}
	return edge, found
}

// Sink reads the options --NAME_topic, --NAME_brokers and so on of a sink.
func Sink(name string, args []string) (*topology.Kafka, []diagnostic.Diagnostic) {
	values, found := read("sink", name, args, sinkOptions)
	return &topology.Kafka{
		Topic: values["topic"], Brokers: brokers(values["brokers"]), Options: settings(values, sinkOptions),
		ExactlyOnce: slices.Contains(args, "--"+name+"_exactly_once"),
	}, found
}

// SinkSettings converts parameters of Wallaroo 0.4 to settings of Kafka's client.
func SinkSettings(maxProduceBufferMs, maxMessageSize uint64) map[string]string {
	return map[string]string{
		linger: strconv.FormatUint(maxProduceBufferMs, 10), messageSize: strconv.FormatUint(maxMessageSize, 10),
	}
}

// CheckLevel reports a log level that Wallaroo does not have.
func CheckLevel(method, value string) []diagnostic.Diagnostic {
	if level.pattern.MatchString(value) {
		return nil
	}
	return []diagnostic.Diagnostic{diagnostic.Wrong(method, "logLevel", diagnostic.Shown(value), level.expected, "pass e.g. "+diagnostic.Shown(level.example))}
}

// read returns the options for a name from arguments "--NAME_OPTION VALUE" or "--NAME_OPTION=VALUE". If an option is
// repeated, the last value counts.
func read(what, name string, args []string, options []option) (map[string]string, []diagnostic.Diagnostic) {
	values := map[string]string{}
	var found []diagnostic.Diagnostic
	for _, o := range options {
		flag := "--" + name + "_" + o.name
		value, given := last(args, flag)
		required := o.name == "topic" || o.name == "brokers"
		if !given && !required {
			continue
		}
		if !o.kind.pattern.MatchString(value) {
			actual := diagnostic.Shown(value)
			if !given {
				actual = "missing"
			}
			found = append(found, diagnostic.Of("T240", "what", what, "name", name, "option", flag,
				"actual", actual, "expected", o.kind.expected, "example", o.kind.example))
			continue
		}
		values[o.name] = value
	}
	return values, found
}

// last returns the value of the last option with a name. If there is none, given is false.
func last(args []string, flag string) (value string, given bool) {
	for i, arg := range args {
		if text, ok := strings.CutPrefix(arg, flag+"="); ok {
			value, given = text, true
		} else if arg == flag && i+1 < len(args) {
			value, given = args[i+1], true
		}
	}
	return value, given
}

// brokers splits a list HOST:PORT,... and adds Kafka's default port where there is none.
func brokers(list string) (addresses []string) {
	for _, address := range broker.FindAllStringSubmatch(list, -1) {
		addresses = append(addresses, net.JoinHostPort(strings.Trim(address[1], "[]"), cmp.Or(address[2], "9092")))
	}
	return addresses
}

// settings converts options to settings of Kafka's client. Intervals are nanoseconds in Wallaroo and milliseconds in
// Kafka.
func settings(values map[string]string, options []option) map[string]string {
	set := map[string]string{}
	for _, o := range options {
		value, given := values[o.name]
		if !given || o.setting == "" {
			continue
		}
		if o.setting == fetchWait {
			if ns, err := strconv.ParseUint(value, 10, 64); err == nil {
				value = strconv.FormatUint(ns/1_000_000, 10)
			}
		}
		set[o.setting] = value
	}
	return set
}

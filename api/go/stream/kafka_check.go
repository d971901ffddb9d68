package stream

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"

	"wallarooapi/internal/diagnostic"
	"wallarooapi/internal/topology"
)

const (
	clientOption              = "kafka."
	mostPartition             = 1<<31 - 1
	mostCreated, mostReplicas = 10_000, 1000
)

// limitingOptions are options of Spark's Kafka source that could split the content of a table over micro-batches, or a
// partition over tasks.
var limitingOptions = []string{
	"maxoffsetspertrigger", "maxrecordsperpartition", "maxtriggerdelay", "minoffsetspertrigger", "minpartitions",
}

// sparkOptions are options of Spark's Kafka source that are not settings of Kafka's client. Spark ignores their case.
var sparkOptions = append([]string{
	"failondataloss", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix", "kafkaconsumer.polltimeoutms",
}, limitingOptions...)

// fields maps options of Spark and of Kafka's client to the fields of Kafka that replace them.
var fields = map[string]string{
	"bootstrap.servers": "Brokers", "topic": "Topic",
}

var fieldsOfSources = map[string]string{"subscribe": "Topic", "assign": "Partitions", "startingoffsets": "Start"}

var startPattern = regexp.MustCompile(`^(start|end|-[1-9][0-9]*|0|[1-9][0-9]*)$`)

// topicCheck collects findings about the topic that the program passed to a function of this package.
type topicCheck struct {
	method string
	topic  Kafka
	found  []diagnostic.Diagnostic
}

func checkTopic(method string, topic Kafka) []diagnostic.Diagnostic {
	c := &topicCheck{method: method, topic: topic}
	switch {
	case topic.Topic == "":
		c.wrong("Topic", "", "the name of a topic")
	case !topology.IsTopic(topic.Topic):
		c.wrong("Topic", topic.Topic, topology.TopicNames)
	}
	c.brokers()
	c.options()
	c.creation()
	if strings.HasSuffix(method, "Sink") {
		c.sink()
	} else {
		c.source()
	}
	return c.found
}

func (c *topicCheck) wrong(parameter string, actual any, expected string, fix ...string) {
	shown := fmt.Sprint(actual)
	if text, is := actual.(string); is {
		shown = diagnostic.Shown(text)
	}
	c.found = append(c.found, diagnostic.Wrong(c.method, parameter, shown, expected, fix...))
}

func (c *topicCheck) brokers() {
	if len(c.topic.Brokers) == 0 {
		c.wrong("Brokers", "", "the addresses of brokers, HOST:PORT")
	}
	for _, broker := range c.topic.Brokers {
		_, address, hasProtocol := strings.Cut(broker, "://")
		if !hasProtocol {
			address = broker
		}
		host, port, err := net.SplitHostPort(address)
		fault := "it is not HOST:PORT"
		if err == nil {
			_, fault = topology.Address(host, port)
		}
		if fault != "" {
			c.found = append(c.found, diagnostic.Of("T211", "what", "broker", "value", diagnostic.Shown(broker), "reason", fault))
		}
	}
}

// options reports two kinds of options without effect: settings of Kafka's client without the prefix, and settings for
// which Kafka has a field.
func (c *topicCheck) options() {
	for _, name := range slices.Sorted(maps.Keys(c.topic.Options)) {
		setting, isClient := strings.CutPrefix(name, clientOption)
		isSource := !strings.HasSuffix(c.method, "Sink")
		isSpark := slices.Contains(sparkOptions, strings.ToLower(name)) && isSource
		field := fields[strings.ToLower(setting)]
		if field == "" && isSource {
			field = fieldsOfSources[strings.ToLower(setting)]
		}
		switch {
		case field != "":
			c.wrong("Options", name, "none that the field "+field+" has", "pass it as "+field)
		case isClient && setting != "" || isSpark:
		default:
			expected := `settings of Kafka's client with "kafka." in front`
			if !strings.HasSuffix(c.method, "Sink") {
				expected += `, or options of Spark's source, e.g. "maxOffsetsPerTrigger"`
			}
			c.wrong("Options", name, expected, fmt.Sprintf("write %q, or leave it out", clientOption+setting))
		}
	}
}

func (c *topicCheck) source() {
	if c.topic.Start != "" && !startPattern.MatchString(c.topic.Start) {
		c.wrong("Start", c.topic.Start, `"start", "end", an offset, or "-n" for n before the end`, `pass e.g. "end"`)
	}
	seen := map[int]bool{}
	for _, number := range c.topic.Partitions {
		if number < 0 || number > mostPartition || seen[number] {
			c.wrong("Partitions", number, "each number of a partition once, 0 to 2147483647")
		}
		seen[number] = true
	}
	if c.topic.ExactlyOnce {
		c.wrong("ExactlyOnce", true, "false: it is of sinks", "leave it out")
	}
	if c.topic.Table {
		c.table()
	}
}

func (c *topicCheck) table() {
	if c.method != "KafkaRecordSource" {
		c.wrong("Table", true, "false: a table has whole records", "use stream.KafkaRecordSource")
	}
	if c.topic.Start != "" && c.topic.Start != "start" {
		c.wrong("Start", c.topic.Start, `"start": a table is read whole`, "leave Start out, or Table")
	}
	for name := range c.topic.Options {
		if slices.Contains(limitingOptions, strings.ToLower(name)) {
			c.wrong("Options", name, "none that would divide a table, which is read whole and in order", "leave the option out")
		}
	}
}

// sink reports fields that only sources have and that have no effect in a sink.
func (c *topicCheck) sink() {
	const onlySources = ": it is of sources"
	if c.topic.Start != "" {
		c.wrong("Start", c.topic.Start, "none"+onlySources, "leave it out")
	}
	if len(c.topic.Partitions) > 0 {
		c.wrong("Partitions", c.topic.Partitions, "none"+onlySources, "leave it out; the encoder's record says its partition")
	}
	if c.topic.Table {
		c.wrong("Table", true, "false"+onlySources, `leave it out; a topic is compacted by Create with the option "cleanup.policy"`)
	}
}

func (c *topicCheck) creation() {
	create := c.topic.Create
	switch {
	case create == nil:
	case (create.Like == "") == (create.Partitions == 0):
		c.wrong("Create", fmt.Sprintf("like %q with %d partitions", create.Like, create.Partitions),
			"either Like, the name of a topic, or Partitions, a number")
	case create.Like == c.topic.Topic, create.Like != "" && !topology.IsTopic(create.Like):
		c.wrong("Create", "like "+create.Like, "the name of another topic in Like")
	case create.Partitions < 0 || create.Partitions > mostCreated || create.Replicas < 0 || create.Replicas > mostReplicas:
		c.wrong("Create", fmt.Sprintf("%d partitions, %d replicas", create.Partitions, create.Replicas),
			"1 to 10000 partitions, at most 1000 replicas")
	}
}

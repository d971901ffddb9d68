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

const clientOption = "kafka."

// sparkOptions are options of Spark's Kafka source that are not settings of Kafka's client. Spark ignores their case.
var sparkOptions = []string{
	"failondataloss", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix", "kafkaconsumer.polltimeoutms",
	"maxoffsetspertrigger", "maxrecordsperpartition", "maxtriggerdelay", "minoffsetspertrigger", "minpartitions",
}

// fields maps options of Spark and of Kafka's client to the fields of type Kafka that replace them.
var fields = map[string]string{
	"bootstrap.servers": "Brokers", "topic": "Topic",
}

// fieldsOfSources maps options of Spark's Kafka source to the fields of type Kafka that replace them.
var fieldsOfSources = map[string]string{"subscribe": "Topic", "assign": "Partitions", "startingoffsets": "Start"}

var startPattern = regexp.MustCompile(`^(start|end|-[1-9][0-9]*|0|[1-9][0-9]*)$`)

// topicCheck collects findings about a value of type Kafka that a program passed to a source or sink. A run checks the
// rest: fields without effect, tables and the creation of topics.
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
	if topic.Start != "" && !startPattern.MatchString(topic.Start) {
		c.wrong("Start", topic.Start, `"start", "end", an offset, or "-n" for n before the end`, `pass e.g. "end"`)
	}
	c.options(!strings.HasSuffix(method, "Sink"))
	return c.found
}

func (c *topicCheck) wrong(parameter, actual, expected string, fix ...string) {
	c.found = append(c.found, diagnostic.Wrong(c.method, parameter, diagnostic.Shown(actual), expected, fix...))
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

// options reports two kinds of options without effect: settings of Kafka's client without the prefix "kafka.", and
// settings for which type Kafka has a field.
func (c *topicCheck) options(isSource bool) {
	for _, name := range slices.Sorted(maps.Keys(c.topic.Options)) {
		setting, isClient := strings.CutPrefix(name, clientOption)
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
			if isSource {
				expected += `, or options of Spark's source, e.g. "maxOffsetsPerTrigger"`
			}
			c.wrong("Options", name, expected, fmt.Sprintf("write %q, or leave it out", clientOption+setting))
		}
	}
}

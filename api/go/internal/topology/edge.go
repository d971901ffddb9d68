package topology

import (
	"maps"
	"slices"
)

// Edge is the outside of a source or sink; its type is its kind.
type Edge interface {
	// kind names the kind in the document.
	kind() string
	// members are those between the kind and what every source (every sink) has.
	members() Object
}

// TCP is a listener of its own (source) or a connection (sink). Framing is set for sources alone.
type TCP struct {
	Host    string
	Port    string
	Framing Framing
}

func (*TCP) kind() string { return "tcp" }

func (e *TCP) members() Object {
	members := address(e.Host, e.Port)
	if e.Framing.Kind != "" {
		members = append(members, Member{"framing", e.Framing.tree()})
	}
	return members
}

func address(host, port string) Object {
	number, _ := Address(host, port)
	return Object{{"host", host}, {"port", number}}
}

// Kafka is a topic. Start, Partitions and Table are those of sources, ExactlyOnce is of sinks.
type Kafka struct {
	Topic      string
	Brokers    []string
	Start      string // start, end, an offset, or -n: n before the end; empty for sinks
	Partitions []Partition
	Options    map[string]string

	ExactlyOnce bool
	Content     string // Record: whole records; empty: values
	Table       bool
	Create      *Creation // nil: the topic exists
}

// Record is the content of whole records.
const Record = "record"

// Creation is how a topic is created that does not exist: like another one, or with a number of partitions.
type Creation struct {
	Like       string
	Partitions int
	Replicas   int // 0 or 1: one
	Options    map[string]string
}

func (c *Creation) tree() Object {
	members := withSome(withSome(Object{}, "like", c.Like), "partitions", c.Partitions)
	if c.Replicas > 1 {
		members = append(members, Member{"replicas", c.Replicas})
	}
	if len(c.Options) > 0 {
		members = append(members, Member{"options", options(c.Options)})
	}
	return members
}

// Partition is a partition of a topic that is read; Start is empty where the topic's counts.
type Partition struct {
	Number int
	Start  string
}

func (*Kafka) kind() string { return "kafka" }

func (e *Kafka) members() Object {
	members := withSome(Object{{"topic", e.Topic}, {"brokers", texts(e.Brokers)}}, "start", e.Start)
	if len(e.Partitions) > 0 {
		members = append(members, Member{"partitions", arrayOf(e.Partitions, func(p *Partition) Object {
			return withSome(Object{{"number", p.Number}}, "start", p.Start)
		})})
	}
	members = withSome(append(members, Member{"options", options(e.Options)}), "exactly_once", e.ExactlyOnce)
	members = withSome(withSome(members, "content", e.Content), "table", e.Table)
	if e.Create != nil {
		members = append(members, Member{"create", e.Create.tree()})
	}
	return members
}

// Generator is a source whose messages user code makes.
type Generator struct{}

func (*Generator) kind() string { return "generator" }

func (*Generator) members() Object { return nil }

// Connector is a listener for the connector protocol.
type Connector struct {
	Host          string
	Port          string
	Cookie        string
	MaxCredits    int
	RefillCredits int
}

func (*Connector) kind() string { return "connector" }

func (e *Connector) members() Object {
	return append(address(e.Host, e.Port), Member{"cookie", e.Cookie},
		Member{"max_credits", e.MaxCredits}, Member{"refill_credits", e.RefillCredits})
}

// ConnectorSink is a program that speaks the connector protocol and takes messages in transactions.
type ConnectorSink struct {
	Host   string
	Port   string
	Cookie string
}

func (*ConnectorSink) kind() string { return "connector" }

func (e *ConnectorSink) members() Object {
	return append(address(e.Host, e.Port), Member{"cookie", e.Cookie})
}

// Spark is any format that Spark reads or writes as a stream. Schema has the columns of a source's rows, where the format needs
// them, and of a sink's whole rows, which the encoder gives as JSON. It may be empty, as may Key and Timestamp, which are of sources.
type Spark struct {
	Format    string
	Options   map[string]string
	Schema    string
	Value     string
	Key       string
	Timestamp string
}

func (*Spark) kind() string { return "spark" }

func (e *Spark) members() Object {
	members := Object{{"format", e.Format}, {"options", options(e.Options)}}
	members = append(withSome(members, "schema", e.Schema), Member{"value", e.Value})
	return withSome(withSome(members, "key", e.Key), "timestamp", e.Timestamp)
}

func options(given map[string]string) Object {
	members := Object{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		members = append(members, Member{name, given[name]})
	}
	return members
}

// withSome appends a member unless its value says nothing: an empty text, 0 or false.
func withSome[T comparable](object Object, key string, value T) Object {
	var nothing T
	if value == nothing {
		return object
	}
	return append(object, Member{key, value})
}

package topology

import (
	"maps"
	"slices"
)

// Edge describes the system from which a source reads or to which a sink writes. Each type is one kind.
type Edge interface {
	// kind returns the name of the kind in the document.
	kind() string
	// members returns the members of this kind. In the document they follow the kind and precede the common members.
	members() Object
}

// TCP is a TCP listener of a source, or a TCP connection of a sink. Only sources have a framing.
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

// Kafka is a topic. Start, Partitions and Table are only for sources, and ExactlyOnce is only for sinks.
type Kafka struct {
	Topic      string
	Brokers    []string
	Start      string // start, end, an offset, or -n for n records before the end; empty for sinks
	Partitions []Partition
	Options    map[string]string

	ExactlyOnce bool
	Content     string // Record for whole records; empty for values
	Table       bool
	Create      *Creation // nil if the topic must exist
}

// Record is the content of a topic that is read or written as whole records.
const Record = "record"

// Creation describes how to create a missing topic: like another topic, or with a number of partitions.
type Creation struct {
	Like       string
	Partitions int
	Replicas   int // 0 or 1 means one
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

// Partition is a partition to read. If Start is empty, the start of the topic counts.
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

// Generator is a source whose messages are made by user code.
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

// ConnectorSink is a program that receives messages in transactions with the connector protocol.
type ConnectorSink struct {
	Host   string
	Port   string
	Cookie string
}

func (*ConnectorSink) kind() string { return "connector" }

func (e *ConnectorSink) members() Object {
	return append(address(e.Host, e.Port), Member{"cookie", e.Cookie})
}

// Spark is a format that Spark reads or writes as a stream. Schema is for the rows of a source, if the format needs it,
// or for the whole rows of a sink, which the encoder returns as JSON; it may be empty. Key and Timestamp are only for
// sources and may be empty.
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

// withSome appends a member unless its value is the zero value.
func withSome[T comparable](object Object, key string, value T) Object {
	var nothing T
	if value == nothing {
		return object
	}
	return append(object, Member{key, value})
}

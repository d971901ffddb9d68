package topology

// Edge describes the system from which a source reads or to which a sink writes. Each kind of system has a type.
type Edge interface {
	// Tree returns the members that describe the system in the topology document.
	Tree() Object
}

// TCP is a TCP listener of a source, or a TCP connection of a sink. Only sources have a framing.
type TCP struct {
	Host    string
	Port    string
	Framing Framing
}

// Tree returns the members that describe this edge (the system of a source or sink) in the topology document.
func (e *TCP) Tree() Object {
	members := address("tcp", e.Host, e.Port)
	if e.Framing.Kind != "" {
		members = append(members, Member{"framing", e.Framing.tree()})
	}
	return members
}

func address(kind, host, port string) Object {
	number, _ := Address(host, port)
	return Object{{"kind", kind}, {"host", host}, {"port", number}}
}

// Kafka is a topic of Kafka. Start, Partitions and Table are only for sources, and ExactlyOnce is only for sinks.
type Kafka struct {
	Topic      string
	Brokers    []string
	Start      string // start, end, an offset, or -n for n records before the end; empty for sinks
	Partitions []Partition
	Options    map[string]string

	ExactlyOnce bool
	Content     string    // Record for whole records; empty for values
	Table       bool      // the topic is read as a table: its records precede other messages of a micro-batch
	Create      *Creation // nil if the topic must exist
}

// Record is the value of Kafka.Content for a topic that is read or written as whole records.
const Record = "record"

// Creation describes how to create a missing topic: with as many partitions as another topic (Like), or with a number
// of partitions.
type Creation struct {
	Like       string
	Partitions int
	Replicas   int // 0 or 1 means one
	Options    map[string]string
}

func (c *Creation) tree() Object {
	members := WithSome(WithSome(Object{}, "like", c.Like), "partitions", c.Partitions)
	if c.Replicas != 1 {
		members = WithSome(members, "replicas", c.Replicas)
	}
	if len(c.Options) > 0 {
		members = append(members, Member{"options", TextsByName(c.Options)})
	}
	return members
}

// Partition is a partition of a topic to read. If Start is empty, Kafka.Start applies.
type Partition struct {
	Number int
	Start  string
}

// Tree returns the members that describe this edge (the system of a source or sink) in the topology document.
func (e *Kafka) Tree() Object {
	members := WithSome(Object{{"kind", "kafka"}, {"topic", e.Topic}, {"brokers", Texts(e.Brokers)}}, "start", e.Start)
	if len(e.Partitions) > 0 {
		members = append(members, Member{"partitions", ArrayOf(e.Partitions, func(p Partition) Object {
			return WithSome(Object{{"number", p.Number}}, "start", p.Start)
		})})
	}
	members = WithSome(append(members, Member{"options", TextsByName(e.Options)}), "exactly_once", e.ExactlyOnce)
	members = WithSome(WithSome(members, "content", e.Content), "table", e.Table)
	if e.Create != nil {
		members = append(members, Member{"create", e.Create.tree()})
	}
	return members
}

// Generator is a source whose messages are made by user code.
type Generator struct{}

// Tree returns the members that describe this edge (the system of a source or sink) in the topology document.
func (*Generator) Tree() Object { return Object{{"kind", "generator"}} }

// Connector is a listener for the connector protocol.
type Connector struct {
	Host          string
	Port          string
	Cookie        string
	MaxCredits    int
	RefillCredits int
}

// Tree returns the members that describe this edge (the system of a source or sink) in the topology document.
func (e *Connector) Tree() Object {
	return append(address("connector", e.Host, e.Port), Member{"cookie", e.Cookie},
		Member{"max_credits", e.MaxCredits}, Member{"refill_credits", e.RefillCredits})
}

// ConnectorSink is a program that receives messages in transactions with the connector protocol.
type ConnectorSink struct {
	Host   string
	Port   string
	Cookie string
}

// Tree returns the members that describe this edge (the system of a source or sink) in the topology document.
func (e *ConnectorSink) Tree() Object {
	return append(address("connector", e.Host, e.Port), Member{"cookie", e.Cookie})
}

// Spark is a format that Spark reads or writes as a stream. Schema has the columns of a source, if the format needs
// them, or of a sink whose encoder returns whole rows as JSON; otherwise it is empty. Value, Key and Timestamp are the
// columns with the value, key and time of a message. Key and Timestamp are only for sources and may be empty.
type Spark struct {
	Format    string
	Options   map[string]string
	Schema    string
	Value     string
	Key       string
	Timestamp string
}

// Tree returns the members that describe this edge (the system of a source or sink) in the topology document.
func (e *Spark) Tree() Object {
	members := Object{{"kind", "spark"}, {"format", e.Format}, {"options", TextsByName(e.Options)}}
	members = append(WithSome(members, "schema", e.Schema), Member{"value", e.Value})
	return WithSome(WithSome(members, "key", e.Key), "timestamp", e.Timestamp)
}

package goka

import (
	"maps"
	"strings"

	"wallarooapi/stream"
)

// application declares the application that runs groups. Each group is one step, which gets the records of all inputs
// and joined tables, and has a named output for each topic that the group writes.
func application(brokers []string, groups []*group) *stream.Application {
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = string(g.graph.Group())
	}
	app := stream.New(strings.Join(names, " + "))
	sources := map[string]bool{}
	for _, g := range groups {
		g.declare(app, brokers, sources)
	}
	finishStates(app, groups)
	return app
}

// declare adds the sources, the step and the sinks of a group to the application. sources contains the source names in
// use. A source has the name of its topic, as in Python. If several edges read the same topic, the names of later
// sources also contain the kind of edge and the group.
func (g *group) declare(app *stream.Application, brokers []string, sources map[string]bool) {
	name := string(g.graph.Group())
	from := func(kind string, topic stream.Kafka) stream.Stream[stream.KafkaRecord] {
		sourceName, source := topic.Topic, stream.KafkaRecordSource(topic)
		if sources[topic.Topic] {
			sourceName = kind + " " + topic.Topic + " of " + name
		}
		sources[topic.Topic] = true
		if !g.options.keepsDeadLetters {
			source = source.OnError("fail") // a record that is too large is a dead letter of the source
		}
		return stream.From(app, sourceName, source)
	}
	var records []stream.Stream[stream.KafkaRecord]
	for _, e := range g.graph.of(input, loop) {
		kind, topic := "input", stream.Kafka{Topic: e.Topic(), Brokers: brokers, Start: g.start, Options: g.reads}
		if e.Topic() == g.graph.loopTopic {
			kind, topic.Create = "loop", g.creation("delete")
		}
		records = append(records, from(kind, topic))
	}
	for _, e := range g.graph.JointTables() {
		topic := stream.Kafka{Topic: e.Topic(), Brokers: brokers, Start: "start", Table: true, Options: g.reads}
		records = append(records, stream.Map(from("join", topic), "join "+e.Topic(), asJoined))
	}
	step := g.step(name, stream.Merge(records[0], records[1:]...))
	if !g.options.keepsDeadLetters {
		step = step.OnError("fail")
	}
	g.writeTo(step, brokers)
}

// step adds the step that calls the group's callbacks for records.
func (g *group) step(name string, records stream.Stream[stream.KafkaRecord]) stream.Stream[*stream.KafkaRecord] {
	var outputs []stream.Outputs
	var options []stream.StateOption
	for _, topic := range g.graph.written() {
		outputs, options = append(outputs, g.outputs[topic]), append(options, g.outputs[topic])
	}
	for _, e := range g.graph.edges[ttl] {
		options = append(options, stream.TTL(e.ttl))
	}
	if g.graph.isStateful() {
		return g.addVisitors(stream.MapState(records, name, g.stateful, options...))
	}
	return stream.Map(records, name, g.stateless, outputs...)
}

// writeTo connects the outputs of a group's step to Kafka sinks. If the group writes no topic, it uses Spark's "noop"
// sink, because an application needs a sink.
func (g *group) writeTo(step stream.Stream[*stream.KafkaRecord], brokers []string) {
	topics := g.graph.written()
	if len(topics) == 0 {
		step.To(stream.SparkSink(stream.Spark{Format: "noop", Value: "value"}, func(*stream.KafkaRecord) (stream.Record, error) {
			return stream.Record{}, stream.ErrSkip
		}).Named(string(g.graph.Group())))
		return
	}
	step.Done()
	for _, name := range topics {
		topic := stream.Kafka{Topic: name, Brokers: brokers, ExactlyOnce: true}
		topic.Options = maps.Clone(g.writes)
		topic.Options["kafka.partitioner"] = "fnv1a"
		if g.options.murmur2 {
			topic.Options["kafka.partitioner"] = "murmur2"
		}
		switch name {
		case g.graph.tableTopic:
			topic.Create = g.creation("compact")
		case g.graph.loopTopic:
			topic.Create = g.creation("delete")
		}
		stream.FromOutput(step, g.outputs[name]).To(stream.KafkaRecordSink(topic, asIs).Named(name))
	}
}

func asIs(record stream.KafkaRecord) (stream.KafkaRecord, error) { return record, nil }

// creation describes the topic of the group's table or loop, for the runtime to create it if it does not exist: with as
// many partitions as the first input. This happens under Serve. NewProcessor creates the topic itself.
func (g *group) creation(policy string) *stream.TopicCreation {
	options := map[string]string{"cleanup.policy": policy}
	return &stream.TopicCreation{Like: g.graph.InputStreams()[0].Topic(), Replicas: g.options.replicas, Options: options}
}

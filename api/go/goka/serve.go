package goka

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/usercode"
	"wallarooapi/internal/workermain"
)

// brokersVariable is the name of an environment variable. Its value, brokers as HOST:PORT,..., replaces the brokers of
// the program.
const brokersVariable = "WALLAROO_BROKERS"

// Serve lets the runtime run groups without a Processor. Call it first in main. If the runtime has started the program,
// Serve does the requested work and exits: it writes the topology of the groups, or runs their callbacks as a worker.
// In all other cases Serve returns at once. With Serve, the commands `wallaroo run DIR` and `wallaroo pack DIR` and
// clusters accept the program like any other, and [Processor.Run] is only for development. Set the options of
// processors with [GroupGraph.WithOptions].
//
// Faults in a graph are reported as a panic of the setup (T217). Before the worker serves, it reads the tables of
// Lookup edges, which may take a minute.
func Serve(brokers []string, groups ...*GroupGraph) {
	mode := os.Getenv("WALLAROO_MODE")
	if mode == "" {
		return
	}
	brokers = reached(brokers)
	os.Exit(workermain.Run("goka.Serve", func() string {
		var all []*group
		for _, graph := range groups {
			if err := graph.Validate(); err != nil {
				panic(fmt.Errorf("group %s: %w", graph.Group(), err))
			}
			if slices.ContainsFunc(all, func(g *group) bool { return g.graph.Group() == graph.Group() }) {
				panic(fmt.Errorf("group %s has two graphs, which would both write its table; a group has one", graph.Group()))
			}
			g, err := newGroup(graph, newOptions(graph, nil), usercode.Context)
			if err != nil {
				panic(fmt.Errorf("group %s: %w", graph.Group(), err))
			}
			all = append(all, g)
		}
		if mode == "worker" {
			for _, g := range all {
				g.prepareWorker(brokers)
			}
		}
		return workermain.Text(declaration.Revealed(application(brokers, all)))
	}))
}

// reached returns the brokers in the variable WALLAROO_BROKERS, or the brokers of the program if the variable is empty.
func reached(brokers []string) []string {
	if given := os.Getenv(brokersVariable); given != "" {
		return strings.Split(given, ",")
	}
	return brokers
}

// prepareWorker reads the lookup tables and the partition counts of topics from Kafka before the first callback. In a
// test without Kafka it reads the tables from topics in memory.
func (g *group) prepareWorker(brokers []string) {
	g.logNotes()
	if directory := os.Getenv(topicsVariable); directory != "" {
		g.useMemory(directory)
		return
	}
	err := g.makeLookups(brokers)
	if err == nil {
		err = g.runLookups(usercode.Context(), func(err error) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) // the supervisor then starts a new process
		})
	}
	if err == nil && g.needsPartitions() {
		err = g.countTopics(brokers)
	}
	if err != nil {
		panic(fmt.Errorf("group %s: %w", g.graph.Group(), err))
	}
	g.assign()
}

// useMemory makes the group use topics of the in-memory engine in place of Kafka: lookups read these topics, and each
// topic has one partition.
func (g *group) useMemory(directory string) {
	for _, e := range g.graph.LookupTables() {
		g.memory[e.Topic()] = newMemoryTable(directory, e.Topic(), e.Codec())
		if err := g.memory[e.Topic()].declare(); err != nil {
			panic(fmt.Errorf("group %s: %w", g.graph.Group(), err))
		}
	}
	g.count = 1
	for _, topic := range g.graph.written() {
		g.partitions[topic] = 1
	}
	g.assign()
}

// needsPartitions reports whether the program needs the partition counts of topics.
func (g *group) needsPartitions() bool {
	return g.options.hasher != nil || g.options.rebalanceCallback != nil || len(g.graph.edges[visitor]) > 0
}

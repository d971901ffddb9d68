package goka

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/launch"
	"wallarooapi/internal/life"
)

// brokersVariable names the brokers, HOST:PORT,..., that count in place of the program's.
const brokersVariable = "WALLAROO_BROKERS"

// Serve does what the runtime asks for where it started the program, and exits: it emits the topology of groups, or hosts their callbacks.
// Otherwise it returns at once. Call it first in main, and `wallaroo run DIR`, `wallaroo pack DIR` and clusters take the program as
// they take every other; Run is then for development. Options of processors come from [GroupGraph.WithOptions].
//
// What is wrong with a graph is reported as a panic of the setup (T217). Tables of Lookup edges are read before the worker serves, which
// may take a minute.
func Serve(brokers []string, groups ...*GroupGraph) {
	mode := os.Getenv("WALLAROO_MODE")
	if mode == "" {
		return
	}
	brokers = reached(brokers)
	os.Exit(launch.Run("goka.Serve", func() string {
		var all []*group
		for _, graph := range groups {
			if err := graph.Validate(); err != nil {
				panic(fmt.Errorf("group %s: %w", graph.Group(), err))
			}
			if slices.ContainsFunc(all, func(g *group) bool { return g.graph.Group() == graph.Group() }) {
				panic(fmt.Errorf("group %s has two graphs, which would both write its table; a group has one", graph.Group()))
			}
			g, err := newGroup(graph, newOptions(graph, nil), life.Context)
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
		return launch.Text(declaration.Revealed(application(brokers, all)))
	}))
}

// reached returns the brokers of groups: those that the environment names, else the program's.
func reached(brokers []string) []string {
	if given := os.Getenv(brokersVariable); given != "" {
		return strings.Split(given, ",")
	}
	return brokers
}

// prepareWorker connects to Kafka for the reads of callbacks there; in a test without Kafka, to the topics in memory.
func (g *group) prepareWorker(brokers []string) {
	g.logNotes()
	if directory := os.Getenv(topicsVariable); directory != "" {
		g.useMemory(directory)
		return
	}
	err := g.makeLookups(brokers)
	if err == nil {
		err = g.runLookups(life.Context(), func(err error) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) // the supervisor starts another process
		})
	}
	if err == nil && g.asksPartitions() {
		err = g.countTopics(brokers)
	}
	if err != nil {
		panic(fmt.Errorf("group %s: %w", g.graph.Group(), err))
	}
	g.assign()
}

// useMemory reads lookups from topics in memory, of one partition each.
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

// asksPartitions reports whether something of the program depends on the number of partitions of topics.
func (g *group) asksPartitions() bool {
	return g.options.hasher != nil || g.options.rebalanceCallback != nil || len(g.graph.edges[visitor]) > 0
}

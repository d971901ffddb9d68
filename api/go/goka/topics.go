package goka

import (
	"errors"
	"fmt"
	"strings"
)

// prepareTopics returns an error if a topic that the group reads does not exist. It creates the topics of loop and
// table with the partition count of the first input, as the runtime does under Serve.
func (g *group) prepareTopics(brokers []string) error {
	return g.withManager(brokers, func(manager TopicManager) error {
		if err := g.countInputs(manager); err != nil {
			return err
		}
		partitions, err := manager.Partitions(g.graph.InputStreams()[0].Topic())
		if err != nil {
			return err
		}
		if loop := g.graph.LoopStream(); loop != nil {
			if err := manager.EnsureStreamExists(loop.Topic(), len(partitions)); err != nil {
				return withRemedy(err)
			}
		}
		if table := g.graph.GroupTable(); table != nil {
			if err := manager.EnsureTableExists(table.Topic(), len(partitions)); err != nil {
				return withRemedy(err)
			}
		}
		return g.countPartitions(manager)
	})
}

// withRemedy adds a remedy to Goka's error if there are fewer brokers than replicas of a new topic.
func withRemedy(err error) error {
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, "rfactor=") || !strings.Contains(text, "replication") {
		return err
	}
	return fmt.Errorf("%w; fix: give NewProcessor the option goka.WithReplicas(1) where there is one broker", err)
}

// countTopics reads the partition counts of the topics that the group reads and writes, and stores them in g. The
// topics must exist.
func (g *group) countTopics(brokers []string) error {
	return g.withManager(brokers, func(manager TopicManager) error {
		return errors.Join(g.countInputs(manager), g.countPartitions(manager))
	})
}

// withManager calls the function do with a new topic manager, and then closes the manager.
func (g *group) withManager(brokers []string, do func(TopicManager) error) (err error) {
	manager, err := g.options.topicManager(brokers)
	if err != nil {
		return fmt.Errorf("Error creating topic manager: %v", err)
	}
	defer func() {
		if closing := manager.Close(); closing != nil && err == nil {
			err = fmt.Errorf("Error closing topic manager: %v", closing)
		}
	}()
	return do(manager)
}

// countInputs sets g.count to the largest number of partitions of an input. It returns an error if an input or a joined
// table does not exist.
func (g *group) countInputs(manager TopicManager) error {
	for _, topic := range g.graph.of(input, joint).Topics() {
		partitions, err := manager.Partitions(topic)
		if err != nil {
			return fmt.Errorf("Error fetching partitions for topic %s: %v", topic, err)
		}
		if g.graph.has(input, topic) {
			g.count = max(g.count, int32(len(partitions)))
		}
	}
	return nil
}

// countPartitions stores the partition counts of the written topics in g.partitions if the program has a hasher.
func (g *group) countPartitions(manager TopicManager) error {
	if g.options.hasher == nil {
		return nil
	}
	for _, topic := range g.graph.written() {
		partitions, err := manager.Partitions(topic)
		if err != nil {
			return fmt.Errorf("Error fetching partitions for topic %s: %v", topic, err)
		}
		g.partitions[topic] = int32(len(partitions))
	}
	return nil
}

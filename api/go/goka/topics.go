package goka

import (
	"errors"
	"fmt"
	"strings"
)

// prepareTopics looks whether the topics that the group reads exist, and creates those of loop and table, with as many partitions as
// the input with the most. Inputs and tables need not have the same number.
func (g *group) prepareTopics(brokers []string) error {
	return g.withManager(brokers, func(manager TopicManager) error {
		if err := g.countInputs(manager); err != nil {
			return err
		}
		if loop := g.graph.LoopStream(); loop != nil {
			if err := manager.EnsureStreamExists(loop.Topic(), int(g.count)); err != nil {
				return withRemedy(err)
			}
		}
		if table := g.graph.GroupTable(); table != nil {
			if err := manager.EnsureTableExists(table.Topic(), int(g.count)); err != nil {
				return withRemedy(err)
			}
		}
		return g.countPartitions(manager)
	})
}

// withRemedy adds a remedy to Goka's text where there are fewer brokers than copies of a new topic.
func withRemedy(err error) error {
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, "rfactor=") || !strings.Contains(text, "replication") {
		return err
	}
	return fmt.Errorf("%w; fix: give NewProcessor the option goka.WithReplicas(1) where there is one broker", err)
}

// countTopics finds out the facts of existing topics that callbacks ask for.
func (g *group) countTopics(brokers []string) error {
	return g.withManager(brokers, func(manager TopicManager) error {
		return errors.Join(g.countInputs(manager), g.countPartitions(manager))
	})
}

// withManager does something with a topic manager of its own.
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

// countInputs finds out the largest number of partitions of an input, and whether inputs and joined tables exist.
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

// countPartitions finds out the number of partitions of the topics to which a hasher of the program assigns keys.
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

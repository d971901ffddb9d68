package goka

import "fmt"

// prepareTopics looks whether the topics that the group reads exist, and creates those of loop and table, with as many partitions as
// the input with the most. It returns how many those are. Inputs and tables need not have the same number.
func (g *group) prepareTopics(brokers []string) (count int, err error) {
	manager, err := g.options.topicManager(brokers)
	if err != nil {
		return 0, fmt.Errorf("Error creating topic manager: %v", err)
	}
	defer func() {
		if closing := manager.Close(); closing != nil && err == nil {
			err = fmt.Errorf("Error closing topic manager: %v", closing)
		}
	}()
	for _, topic := range g.graph.of(input, joint).Topics() {
		partitions, err := manager.Partitions(topic)
		if err != nil {
			return 0, fmt.Errorf("Error fetching partitions for topic %s: %v", topic, err)
		}
		if g.graph.has(input, topic) {
			count = max(count, len(partitions))
		}
	}
	if loop := g.graph.LoopStream(); loop != nil {
		if err := manager.EnsureStreamExists(loop.Topic(), count); err != nil {
			return 0, err
		}
	}
	if table := g.graph.GroupTable(); table != nil {
		if err := manager.EnsureTableExists(table.Topic(), count); err != nil {
			return 0, err
		}
	}
	g.count = int32(count)
	return count, g.countPartitions(manager)
}

// countPartitions finds out how many partitions the topics have to which a hasher of the program assigns keys.
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

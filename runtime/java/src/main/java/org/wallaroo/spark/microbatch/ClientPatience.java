package org.wallaroo.spark.microbatch;

import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.spark.TaskContext;

/**
 * Chooses how long a Kafka client of Spark's connector waits for an answer. A consumer in a task waits long, because a
 * task that fails may end the query. The client in the driver waits for a short time; then Spark creates a new client.
 * The old client has asked the leader of a partition, and would not notice that this broker has left the cluster
 * (KAFKA-20673).
 *
 * <p>Spark gives all clients of a source the same settings. The setting {@code ${NAME:TASK,DRIVER}} has both values.
 */
public final class ClientPatience implements ConfigProvider {
    @Override
    public ConfigData get(String path) {
        return new ConfigData(Map.of());
    }

    @Override
    public ConfigData get(String path, Set<String> keys) {
        int chosen = TaskContext.get() == null ? 1 : 0;
        return new ConfigData(keys.stream().collect(Collectors.toMap(key -> key, key -> key.split(",")[chosen])));
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}

package org.wallaroo.spark.query;

/**
 * The driver's settings of a source that Spark reads, such as a topic in micro-batches, for the tasks of the query.
 *
 * @param port number of the source in the plan
 * @param stage number of the stage of level 0 that takes its messages
 * @param path of the source in the topology
 * @param name of the source
 * @param place origin of its messages, for people
 * @param limit largest size of a message in bytes
 * @param keys whether the messages have keys
 * @param whole whether the messages are whole records of Kafka
 * @param topic whether the source is a topic of Kafka
 * @param table whether the messages precede those of other sources in each micro-batch
 * @param rows whether the messages are rows, each a JSON object
 */
public record RecordSource(
        int port, int stage, String path, String name, String place, long limit, boolean keys, boolean whole,
        boolean topic, boolean table, boolean rows) {}

package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The driver's settings of an application that a PySpark job applies ({@code apply}): its steps run between DataFrames
 * of a user's own query.
 *
 * @param outputs names of the sinks by their ports
 * @param states names of the states by the ports of their logs
 * @param inTime ports of the steps that get their messages in the order of event time, see {@code dataframe/ticks.py}
 * @param ticks the ticks that make time pass for windows, timers and ttl
 * @param facts facts about each level, which later runs of the query compare with theirs ({@code plan/kept_state.py})
 * @param counts path and name of each count that becomes a metric of the query; empty if nobody observes the query
 * @param givesStates whether the states at the end become rows, too
 * @param isStream whether the query has a checkpoint; within {@code foreachBatch} it has none
 * @param isOrdered whether rows have the order of a column
 * @param joinsRows whether each row has several messages of the sink, as an array of JSON
 * @param acceptsChanged whether a changed program may lose fields of states
 * @param wayOut advice to the user: how to go on although a dead letter has ended the query
 */
public record AppliedSettings(
        Map<Integer, String> outputs, Map<Integer, String> states, Set<Integer> inTime, Ticks ticks, List<JsonNode> facts,
        List<Count> counts, boolean givesStates, boolean isStream, boolean isOrdered, boolean joinsRows,
        boolean acceptsChanged, String wayOut) {
    /**
     * A count of a source, step or sink.
     *
     * @param path of the source, step or sink
     * @param name such as {@code messages_in}
     */
    public record Count(String path, String name) {}
}

package org.wallaroo.spark.query;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;

/**
 * The driver's settings of an applied application, whose steps are between DataFrames of a user's own query.
 *
 * @param settings of the query
 */
public record Applied(Settings settings) {
    /** Says whether the application is applied; otherwise its last level stages its output. */
    public static boolean is(Settings settings) {
        return settings.value().has("outputs");
    }

    /** Says whether the user's query has a checkpoint. Within {@code foreachBatch} it has none. */
    public boolean isStream() {
        return settings.value().path("is_stream").asBoolean();
    }

    /** Says whether rows have the order of a column. */
    public boolean isOrdered() {
        return settings.value().path("is_ordered").asBoolean();
    }

    /** Returns the names of the sinks by their ports. */
    public Map<Integer, String> outputs() {
        return names("outputs");
    }

    /** Returns the names of the states by the ports of their logs. */
    public Map<Integer, String> states() {
        return names("states");
    }

    /** Says whether the states at the end of a batch become rows, too. */
    public boolean givesStates() {
        return settings.value().path("gives_states").asBoolean();
    }

    /** Returns the ticks that make time pass for windows, timers and ttl. */
    public Ticks ticks() {
        return Json.read(settings.value().get("ticks"), Ticks.class);
    }

    /** Returns what later runs of the query compare with theirs: {@code plan/kept.py} says what it is. */
    public JsonNode facts(int level) {
        return settings.value().get("facts").get(level);
    }

    /** Returns how a dead letter that ends the query does so no more. */
    public String wayOut() {
        return settings.value().get("way_out").asText();
    }

    /** Says whether a changed program may lose fields of states. */
    public boolean acceptsChanged() {
        return settings.value().path("accepts_changed").asBoolean();
    }

    private Map<Integer, String> names(String member) {
        Map<Integer, String> names = new HashMap<>();
        for (Map.Entry<String, JsonNode> each : settings.value().get(member).properties()) {
            names.put(Integer.valueOf(each.getKey()), each.getValue().asText());
        }
        return names;
    }
}

package org.wallaroo.spark.state;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.wallaroo.spark.query.Json;

/** Reads the states that a user wants to see, as rows of port, key, encoding, size and value; see {@code choice.py}. */
final class ChosenStates extends StoredLogs<Row> {
    private static final long serialVersionUID = 1L;

    private final String text;
    private transient Choice choice;

    /** Makes the reader for a {@link Choice}, which is given as JSON with bytes in base64. */
    ChosenStates(String text) {
        this.text = text;
    }

    private Choice choice() {
        if (choice == null) {
            choice = Choice.of(Json.parse(text));
        }
        return choice;
    }

    @Override
    LatestStates reader() {
        return new LatestStates(choice()::wants, choice()::hasValue);
    }

    @Override
    Iterator<Row> results(Map<StateKey, StateValue> states) {
        List<Map.Entry<StateKey, StateValue>> sorted = new ArrayList<>(states.entrySet());
        sorted.sort(Map.Entry.comparingByKey());
        List<Row> rows = new ArrayList<>();
        long size = 0;
        for (Map.Entry<StateKey, StateValue> state : sorted) {
            boolean isFull = rows.size() > 1 && size > choice().pageBytes(); // no later state of any bucket is wanted
            if (rows.size() >= choice().limit() || isFull) {
                break;
            }
            byte[] value = state.getValue().whole();
            size += state.getKey().key().length + value.length;
            rows.add(RowFactory.create(state.getKey().port(), state.getKey().key(), state.getValue().encoding(),
                    state.getValue().size(), value));
        }
        return rows.iterator();
    }

    /**
     * Describes the states that the user wants to see.
     *
     * @param ports ports of the states
     * @param keys keys of the states; null for all keys
     * @param prefixes prefixes of keys; a wanted key has one of these
     * @param after key that precedes all wanted keys; null for all keys
     * @param limit largest number of states
     * @param mostBytes largest size of a value; of a larger value only the size is shown
     * @param pageBytes size of all shown states after which no state follows
     */
    private record Choice(Set<Integer> ports, Set<StateKey> keys, List<byte[]> prefixes, byte[] after, long limit,
            long mostBytes, long pageBytes) {
        static Choice of(JsonNode value) {
            Set<Integer> ports = new HashSet<>();
            value.path("ports").forEach(port -> ports.add(port.asInt()));
            Set<StateKey> keys = value.path("keys").isArray() ? new HashSet<>() : null;
            value.path("keys").forEach(key -> keys.add(new StateKey(0, bytes(key))));
            List<byte[]> prefixes = new ArrayList<>();
            value.path("prefixes").forEach(prefix -> prefixes.add(bytes(prefix)));
            byte[] after = value.path("after").isTextual() ? bytes(value.path("after")) : null;
            return new Choice(ports, keys, prefixes, after, value.path("limit").asLong(Long.MAX_VALUE),
                    value.path("most_bytes").asLong(Long.MAX_VALUE), value.path("page_bytes").asLong(Long.MAX_VALUE));
        }

        boolean wants(StateKey state) {
            byte[] key = state.key();
            return ports.contains(state.port())
                    && (after == null || Arrays.compareUnsigned(key, after) > 0)
                    && (keys == null || keys.contains(new StateKey(0, key)))
                    && prefixes.stream().anyMatch(prefix -> prefix.length <= key.length
                            && Arrays.equals(prefix, 0, prefix.length, key, 0, prefix.length));
        }

        boolean hasValue(long size) {
            return size <= mostBytes;
        }

        private static byte[] bytes(JsonNode text) {
            try {
                return text.binaryValue();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}

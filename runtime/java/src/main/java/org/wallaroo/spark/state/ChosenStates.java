package org.wallaroo.spark.state;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.wallaroo.spark.query.Json;

/**
 * Reads the states that a user wants to see ({@code wallaroo state}), as rows of port, key, encoding, size and value.
 */
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
            choice = Json.read(Json.parse(text), Choice.class);
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
     * The conditions for the states that the user wants to see; {@code state_store/choice.py} writes them.
     *
     * @param ports ports of the states
     * @param keys keys of the states; null for all keys
     * @param prefixes prefixes of keys; a wanted key has one of these
     * @param after key that precedes all wanted keys; null for all keys
     * @param limit largest number of states; null for no limit
     * @param mostBytes largest size of a value; of a larger value only the size is shown
     * @param pageBytes size of all shown states after which no state follows
     */
    record Choice(Set<Integer> ports, Set<ByteBuffer> keys, List<byte[]> prefixes, byte[] after, Long limit,
            Long mostBytes, Long pageBytes) {
        Choice {
            limit = limit == null ? Long.MAX_VALUE : limit;
            mostBytes = mostBytes == null ? Long.MAX_VALUE : mostBytes;
            pageBytes = pageBytes == null ? Long.MAX_VALUE : pageBytes;
        }

        boolean wants(StateKey state) {
            byte[] key = state.key();
            return ports.contains(state.port())
                    && (after == null || Arrays.compareUnsigned(key, after) > 0)
                    && (keys == null || keys.contains(ByteBuffer.wrap(key)))
                    && prefixes.stream().anyMatch(prefix -> prefix.length <= key.length
                            && Arrays.equals(prefix, 0, prefix.length, key, 0, prefix.length));
        }

        boolean hasValue(long size) {
            return size <= mostBytes;
        }
    }
}

package org.wallaroo.spark.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.bucket.PlainStore;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;

class FinalStatesTest {
    private static final Map<Integer, String> NAMES = Map.of(1, "totals", 2, "counts");

    private static FinalStates left(Consumer<LogWriter> states) {
        List<byte[]> rows = new ArrayList<>();
        LogWriter writer = new LogWriter(new LogWriter.Layout(0, 1, new int[1]), row -> rows.add(row.toBytes()));
        states.accept(writer);
        writer.flush();
        PlainStore store = new PlainStore();
        LogLoader.load(store, rows.iterator());
        return new FinalStates(store, 0, NAMES);
    }

    private static StateValue state(int encoding, byte[] value) {
        return new StateValue(encoding, value.length, List.of(value));
    }

    private static String shown(int port, int encoding, byte[] key, byte[] value) {
        return port + " " + encoding + " " + HexFormat.of().formatHex(key) + " " + Arrays.hashCode(value);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void framesHaveAllStatesAndALimitedSize(long seed) {
        Random random = new Random(seed);
        Map<String, byte[]> states = new TreeMap<>();
        List<String> found = new ArrayList<>();
        FinalStates left = left(writer -> {
            for (int count = random.nextInt(200); count > 0; count--) {
                byte[] key = new byte[8 + random.nextInt(1 << random.nextInt(20))];
                byte[] value = new byte[random.nextInt(1 << random.nextInt(20))];
                random.nextBytes(key);
                random.nextBytes(value);
                int port = 1 + random.nextInt(2);
                int encoding = 16 + random.nextInt(2);
                writer.add(new StateKey(port, key), state(encoding, value));
                states.put(shown(port, encoding, key, value), value);
            }
        });
        left.forEachRemaining(frame -> {
            Columns columns = Columns.read(frame);
            long bytes = 0;
            for (int i = 0; i < columns.count(); i++) {
                found.add(shown(columns.port(), columns.encoding(), columns.key(i), columns.values().get(i)));
                bytes += columns.key(i).length + columns.values().get(i).length;
            }
            assertTrue(columns.count() == 1 || bytes <= LogWriter.ENTRY_BYTES, columns.count() + " of " + bytes);
        });
        found.sort(null);
        assertEquals(List.copyOf(states.keySet()), found);
    }

    /** A key and a state that just fit into a frame are accepted. With one more byte they are refused. */
    @ParameterizedTest
    @CsvSource({"3, 0", "70000, 0", "70000, 1"})
    void aStateThatFitsInNoFrameIsRefused(int keyBytes, int more) {
        byte[] key = "k".repeat(keyBytes).getBytes();
        byte[] value = new byte[Frames.MAX_BODY_BYTES - 16 - keyBytes + more];
        FinalStates left = left(writer -> writer.add(new StateKey(1, key), state(16, value)));
        if (more == 0) {
            assertEquals(value.length, Columns.read(left.next()).values().get(0).length);
            return;
        }
        String text = assertThrows(OperatorFailure.class, left::next).forPeople().getMessage();
        assertTrue(text.startsWith("C525 gives_states: state \"totals\" of the key \"kkk"), text);
        assertTrue(text.contains(" has 67108809 bytes; at most 67108808 are possible; key and state are one row"), text);
        assertTrue(text.length() < 1000, "a long key is cut");
    }

    @Test
    void aBucketWithoutStatesHasNoFrames() {
        assertEquals(false, left(writer -> { }).hasNext());
    }
}

package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.Settings;

class LevelOutputTest {
    private static final int STREAM = 1;
    private static final int TABLE = 2;

    private static Settings settings(boolean controlsPrecede) {
        return Settings.of(Json.object("levels", List.of(List.of(), List.of()), "targets", List.of(0),
                "later_ports", List.of(List.of(STREAM, TABLE, Frames.TICK_PORT), List.of()),
                "controls_precede", controlsPrecede));
    }

    private static List<byte[]> rows(int task, boolean isTable, boolean controlsPrecede, List<JournalRow.Item> items) {
        Attempt attempt = new Attempt("q", 5, task, task);
        TaskAccount account = new TaskAccount(attempt, 0);
        return new LevelOutput(settings(controlsPrecede), 0, attempt, account, isTable).take(items);
    }

    private static JournalRow.Item item(int port, int origin, long sequence) {
        return new JournalRow.Item(port, Frames.isControl(port) ? -1 : 3, origin, FramesTest.frame(port, 1, sequence, new byte[2]));
    }

    /** Rows of tables come first, then records, then ticks, because their sequences cannot be compared. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whatSparkReadsIsInOrderOfTablesRecordsAndTicks(long seed) {
        Random random = new Random(seed);
        List<byte[]> moved = new ArrayList<>();
        for (int task = 0; task < 5; task++) {
            int port = List.of(STREAM, TABLE, Frames.TICK_PORT).get(random.nextInt(3));
            List<JournalRow.Item> items = new ArrayList<>();
            for (int count = random.nextInt(9); count > 0; count--) {
                items.add(item(port, random.nextInt(-1, 20), port == TABLE ? 0 : random.nextInt(100)));
            }
            moved.addAll(rows(task, port == TABLE, true, items));
        }
        Collections.shuffle(moved, random);
        List<ShuffleRow> found = moved.stream().map(ShuffleRow::fromBytes).sorted(ShuffleRow.ORDER).toList();
        List<Integer> ports = found.stream().map(ShuffleRow::port).toList();
        List<Integer> expected = new ArrayList<>(ports);
        expected.sort(java.util.Comparator.comparing(port -> List.of(TABLE, STREAM, Frames.TICK_PORT).indexOf(port)));
        assertEquals(expected, ports);
        // Calls of buckets put what comes by one stage before what comes by others.
        found.forEach(row -> assertEquals(row.port() == TABLE, row.origin() < -1));
        found.stream().filter(row -> Frames.isControl(row.port())).forEach(row -> {
            assertEquals("", Frames.verify(row.payload(), LevelOutput.LAST).fault());
        });
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 7, 1L << 40})
    void ticksBesideMessagesOfAJournalKeepTheirSequence(long sequence) {
        List<byte[]> rows = rows(0, false, false, List.of(item(Frames.TICK_PORT, -1, sequence)));
        assertEquals("", Frames.verify(ShuffleRow.fromBytes(rows.get(0)).payload(), sequence).fault());
    }
}

package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
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

/** Runs drawn rows of a partition, in a level that is not the last one. */
class LevelRowsTest {
    private static final int MINE = 1;
    private static final int LATER = 2;
    private static final int BOTH = 3;
    private static final int GIVEN = 4;
    private static final ShuffleRow.Maker MAKER = new ShuffleRow.Maker(0, 0, 7);

    private static Settings settings() {
        return Settings.of(Json.object(
                "levels", List.of(
                        List.of(), List.of(Json.parse(Json.object("entries", List.of(MINE, BOTH, Frames.TICK_PORT)))), List.of()),
                "targets", List.of(0), "later_ports", List.of(List.of(), List.of(LATER, BOTH, GIVEN), List.of()),
                "controls_precede", false));
    }

    private static ShuffleRow drawn(Random random, int number) {
        ShuffleRow.Kind kind = ShuffleRow.Kind.values()[Math.min(random.nextInt(6), 2)];
        kind = random.nextInt(3) > 0 ? ShuffleRow.Kind.DATA : kind;
        int port = kind == ShuffleRow.Kind.DATA ? List.of(MINE, LATER, BOTH).get(random.nextInt(3)) : 9;
        byte[] frame = FramesTest.frame(port, 1, random.nextInt(50), new byte[] {(byte) number});
        return new ShuffleRow(0, kind, kind == ShuffleRow.Kind.DATA ? 3 : -1, -1, number, MAKER, frame);
    }

    /**
     * Of several ticks after all records only the last one runs: time in which records waited is no silence of their
     * keys.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void ofTicksAfterAllRecordsTheLastOneRuns(long seed) {
        Random random = new Random(seed);
        List<byte[]> rows = new ArrayList<>();
        int messages = random.nextInt(5);
        for (int number = 0; number < messages; number++) {
            byte[] frame = FramesTest.frame(MINE, 1, random.nextBoolean() ? LevelOutput.LAST : number, new byte[1]);
            rows.add(new ShuffleRow(0, ShuffleRow.Kind.DATA, 3, -1, 1 + number, MAKER, frame).toBytes());
        }
        int ticks = random.nextInt(1, 6);
        for (int time = 1; time <= ticks; time++) {
            byte[] frame = Frames.tick(LevelOutput.LAST, time);
            rows.add(new ShuffleRow(0, ShuffleRow.Kind.DATA, -1, -1, -1, MAKER, frame).toBytes());
        }
        Collections.shuffle(rows, random);
        List<JournalRow.Item> ran = new ArrayList<>();
        TaskAccount account = new TaskAccount(new Attempt("q", 5, 0, 7), 1);
        Settings settings = settings();
        LevelRows made = new LevelRows(settings, 1, rows.iterator(), items -> {
            ran.addAll(items);
            return List.<List<JournalRow.Item>>of().iterator();
        }, new LevelOutput(settings, 1, new Attempt("q", 5, 0, 7), account, false), account);
        made.forEachRemaining(row -> {});
        List<Long> found = ran.stream().filter(item -> item.port() == Frames.TICK_PORT)
                .map(item -> Frames.timeMs(item.frame())).toList();
        assertEquals(List.of((long) ticks), found);
        assertEquals(messages + 1, ran.size());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void nothingIsKeptBackThatNoCallNeeds(long seed) {
        Random random = new Random(seed);
        List<ShuffleRow> rows = new ArrayList<>();
        for (int number = random.nextInt(60); number > 0; number--) {
            rows.add(drawn(random, number));
        }
        int[] read = {0};
        Iterator<byte[]> input = new Iterator<>() {
            @Override
            public boolean hasNext() {
                return read[0] < rows.size();
            }

            @Override
            public byte[] next() {
                return rows.get(read[0]++).toBytes();
            }
        };
        List<JournalRow.Item> ran = new ArrayList<>();
        int[] asked = {0};
        int steps = random.nextInt(5);
        Iterator<List<JournalRow.Item>> outputs = new Iterator<>() {
            @Override
            public boolean hasNext() {
                return asked[0] < steps;
            }

            @Override
            public List<JournalRow.Item> next() {
                asked[0]++;
                return List.of(new JournalRow.Item(GIVEN, 3, 5, FramesTest.frame(GIVEN, 1, asked[0], new byte[1])));
            }
        };
        Attempt attempt = new Attempt("q", 5, 0, 7);
        TaskAccount account = new TaskAccount(attempt, 1);
        LevelRows made = new LevelRows(settings(), 1, input, items -> {
            ran.addAll(items);
            return outputs;
        }, new LevelOutput(settings(), 1, attempt, account, false), account);

        for (int number = 0; number < rows.size(); number++) {
            ShuffleRow row = rows.get(number);
            if (row.kind() != ShuffleRow.Kind.DATA || row.port() != MINE) {
                assertTrue(made.hasNext());
                assertEquals(number + 1, read[0], "it has read further");
                assertArrayEquals(row.toBytes(), made.next());
            }
        }
        for (int step = 1; step <= steps; step++) {
            assertTrue(made.hasNext());
            assertEquals(step, asked[0], "it has gone further");
            ShuffleRow given = ShuffleRow.fromBytes(made.next());
            assertEquals(step, given.number());
            assertEquals(GIVEN, given.port());
        }
        assertTrue(made.hasNext());
        assertEquals(ShuffleRow.Kind.ACCOUNT, ShuffleRow.fromBytes(made.next()).kind());
        assertTrue(!made.hasNext());
        List<String> expected = rows.stream()
                .filter(row -> row.kind() == ShuffleRow.Kind.DATA && row.port() != LATER)
                .sorted(ShuffleRow.ORDER)
                .map(row -> Arrays.toString(row.payload()))
                .toList();
        assertEquals(expected, ran.stream().map(item -> Arrays.toString(item.frame())).toList());
    }
}

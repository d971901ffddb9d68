package org.wallaroo.spark.stage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;
import org.wallaroo.spark.message.JournalRow.Kind;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.message.JournalOrigins;
import org.wallaroo.spark.query.StageSettings;
import org.wallaroo.spark.worker.FakeWorker;
import org.wallaroo.spark.worker.WorkerChannel;

class SourceLevelTest {
    @TempDir
    Path directory;

    /**
     * Returns rows as the journal's reader does. If the level asks for a row when none comes, it would wait, so it must
     * have returned all earlier rows.
     */
    private static final class Source implements Iterator<JournalRow> {
        private final List<JournalRow> given = new ArrayList<>();
        private final List<JournalRow> rows;
        private boolean isQuiet; // nothing more is to come for now
        private int seen; // rows that were given on

        private Source(List<JournalRow> rows) {
            this.rows = rows;
        }

        @Override
        public boolean hasNext() {
            long owed = given.stream().filter(row -> row.kind() != Kind.IDLE).count() - seen;
            assertTrue(!isQuiet || owed == 0, () -> "it waits for a message and keeps back " + owed + " of " + given);
            return given.size() < rows.size();
        }

        @Override
        public JournalRow next() {
            JournalRow row = rows.get(given.size());
            given.add(row);
            isQuiet = row.kind() == Kind.IDLE || isQuiet && row.kind() == Kind.FLUSH;
            return row;
        }
    }

    private static JournalRow.Place place(long messages) {
        return new JournalRow.Place(messages * 10, messages, messages);
    }

    /** Draws rows of the journal's reader: IDLE once after frames, FLUSH at any time after frames. */
    private static List<JournalRow> rows(Random random) {
        List<JournalRow> rows = new ArrayList<>();
        long messages = 0;
        for (int i = 0; i < 30; i++) {
            for (int burst = random.nextInt(6); burst >= 0; burst--) {
                byte[] frame = FramesTest.frame(0, 2, messages, new byte[5]);
                messages += 2;
                if (random.nextInt(3) == 0) {
                    byte[] visit = FramesTest.frame(Frames.VISIT_PORT, 1, messages, new byte[9]);
                    frame = random.nextBoolean() ? visit : Frames.joined(List.of(frame, visit));
                }
                rows.add(new JournalRow(Kind.FRAMES, place(messages), List.of(new JournalRow.Item(0, -1, -1, frame))));
                if (random.nextInt(4) == 0) {
                    rows.add(JournalRow.of(Kind.FLUSH, place(messages)));
                }
            }
            rows.add(JournalRow.of(Kind.IDLE, place(messages)));
            if (random.nextBoolean()) {
                rows.add(JournalRow.of(Kind.FLUSH, place(messages)));
            }
        }
        return rows;
    }

    private static long visits(JournalRow row) {
        return row.items().stream()
                .filter(item -> Frames.countByPort(item.frame()).containsKey(Frames.VISIT_PORT))
                .count();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void allIsGivenInOrderBeforeItWaits(long seed) throws IOException {
        List<JournalRow> rows = rows(new Random(seed));
        Source source = new Source(rows);
        List<String> found = new ArrayList<>();
        try (FakeWorker worker = new FakeWorker(directory, () -> new DataCallsTest.Answers(2, 2, 2), () -> null)) {
            StageSettings settings = worker.settings();
            DataCalls calls = new DataCalls(new WorkerChannel(settings), DataCallsTest.OPENING, settings.deadlineMs(), AccountTest.empty());
            SourceLevel outputs = new SourceLevel(source, calls, new Level(List.of()), new JournalOrigins(Map.of()), Set.of(0), Set.of(), Set.of(Frames.VISIT_PORT));
            while (outputs.hasNext()) {
                JournalRow row = outputs.next();
                source.seen++;
                found.add(row.kind() + " " + row.place() + " " + visits(row) + " of " + row.items().size());
            }
        }
        List<String> expected = new ArrayList<>();
        for (JournalRow row : rows) {
            if (row.kind() != Kind.IDLE) {
                long frames = row.items().stream().mapToLong(item -> Frames.countByPort(item.frame()).size()).sum();
                expected.add(row.kind() + " " + row.place() + " " + visits(row) + " of " + frames);
            }
        }
        assertEquals(expected, found);
    }
}

package org.wallaroo.spark.journal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.query.OperatorFailure;

/** Compares ranges of a drawn journal with the list of its frame boundaries. */
class JournalDirectoryTest {
    @TempDir
    private Path directory;

    private WrittenJournal drawn(Random random) throws IOException {
        WrittenJournal journal = new WrittenJournal(directory);
        for (int frame = random.nextInt(60); frame > 0; frame--) {
            if (random.nextInt(8) == 0) {
                journal.begin();
            }
            journal.append(random.nextInt(3), random.nextInt(4), random.nextInt(300));
        }
        journal.publish();
        return journal;
    }

    private static JournalOffset any(WrittenJournal journal, Random random) {
        return journal.boundaries().get(random.nextInt(journal.boundaries().size()));
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void aLimitIsTheLastBoundaryWithinButOneFrameAtLeast(long seed) throws Exception {
        Random random = new Random(seed);
        WrittenJournal journal = drawn(random);
        JournalPlace place = new JournalDirectory(directory);
        assertSame(journal.end(), place.end());
        for (int i = 0; i < 20; i++) {
            JournalOffset from = any(journal, random);
            long most = random.nextInt(2000);
            JournalOffset expected = from;
            for (JournalOffset each : journal.boundaries()) {
                boolean isFirst = each.offset() > from.offset() && expected == from;
                expected = isFirst || each.offset() > from.offset() && each.offset() - from.offset() <= most ? each : expected;
            }
            assertSame(expected, place.limit(from, most, 0));
        }
    }

    private static void assertSame(JournalOffset expected, JournalOffset found) {
        assertEquals(expected.json(), found.json());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void partsFollowEachOtherAndHaveAllBytes(long seed) throws IOException {
        Random random = new Random(seed);
        WrittenJournal journal = drawn(random);
        JournalPlace place = new JournalDirectory(directory);
        List<Long> boundaries = journal.boundaries().stream().map(JournalOffset::offset).toList();
        for (int i = 0; i < 20; i++) {
            JournalOffset first = any(journal, random);
            JournalOffset last = any(journal, random);
            JournalOffset from = first.offset() < last.offset() ? first : last;
            JournalOffset to = from == first ? last : first;
            int parts = 1 + random.nextInt(5);
            List<Long> ends = place.split(from, to, parts);
            assertTrue(ends.size() <= parts && boundaries.containsAll(ends), ends.toString());
            ByteArrayOutputStream read = new ByteArrayOutputStream();
            long at = from.offset();
            for (long end : ends) {
                try (JournalRange range = place.range(new JournalOffset(WrittenJournal.ID, at, 0), end, 500)) {
                    range.forEachRemaining(row -> read.writeBytes(row.items().get(0).frame()));
                }
                at = end;
            }
            byte[] expected = java.util.Arrays.copyOfRange(journal.bytes(), (int) from.offset(), (int) to.offset());
            assertArrayEquals(expected, read.toByteArray());
        }
    }

    @Test
    void anotherJournalAndOneThatHasLostItsEndAreRefused() throws Exception {
        WrittenJournal journal = new WrittenJournal(directory);
        JournalPlace place = new JournalDirectory(directory);
        assertTrue(assertThrows(OperatorFailure.class, place::end).getMessage().contains("R698"));
        journal.append(0, 1, 10);
        journal.publish();
        for (JournalOffset from : List.of(new JournalOffset(7, 0, 0), new JournalOffset(WrittenJournal.ID, 1000, 3))) {
            OperatorFailure failure = assertThrows(OperatorFailure.class, () -> place.limit(from, 10, 0));
            assertTrue(failure.getMessage().contains("R698"), failure.getMessage());
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void aWaitEndsWithTheNextWriteOrWithItsTime(long seed) throws Exception {
        Random random = new Random(seed);
        WrittenJournal journal = new WrittenJournal(directory);
        journal.publish();
        try (JournalPlace place = new JournalDirectory(directory)) {
            for (int i = 0; i < 8; i++) {
                JournalOffset from = place.end();
                assertSame(from, place.limit(from, 1000, 1 + random.nextInt(20)));
                if (random.nextBoolean()) {
                    journal.append(0, 1, 10); // before the wait begins
                    journal.publish();
                    assertSame(journal.end(), place.limit(from, 1000, 60_000));
                    continue;
                }
                long pause = random.nextInt(30);
                Thread writer = new Thread(() -> {
                    try {
                        Thread.sleep(pause);
                        journal.append(0, 1, 10);
                        journal.publish();
                    } catch (IOException | InterruptedException error) {
                        throw new IllegalStateException(error);
                    }
                });
                writer.start();
                long begin = System.nanoTime();
                JournalOffset found = place.limit(from, 1000, 60_000);
                writer.join();
                assertSame(journal.end(), found);
                assertTrue(System.nanoTime() - begin < 30_000_000_000L, "it was not told of the write");
            }
        }
    }
}

package org.wallaroo.spark.microbatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.journal.WrittenJournal;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Json;
import org.wallaroo.spark.query.Settings;

class SourceTaskTest {
    @TempDir
    Path directory;

    private long openFiles() throws IOException {
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            return descriptors.filter(this::isOfJournal).count();
        }
    }

    private boolean isOfJournal(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).startsWith(directory.toRealPath());
        } catch (IOException gone) {
            return false;
        }
    }

    /**
     * The file of a range is closed when the next range begins, or when the task ends, also in the middle of a range.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void noPartStaysOpen(long seed) throws IOException {
        Random random = new Random(seed);
        WrittenJournal journal = new WrittenJournal(directory);
        List<byte[]> parts = new ArrayList<>();
        for (int number = 0; number < 6; number++) {
            JournalOffset begin = journal.end();
            journal.append(0, 1 + random.nextInt(3), random.nextInt(300));
            parts.add(new JournalPart(0, WrittenJournal.ID, begin.offset(), journal.end().offset()).toBytes());
        }
        journal.publish();
        Settings settings = Settings.of(Json.object("row_bytes", 1 << 20,
                "journals", List.of(Json.parse(Json.object("directory", directory.toString()))),
                "levels", List.of(List.of(Json.parse(Json.object("entries", List.of(0)))))));
        var account = new TaskAccount(new Attempt("q", 5, 0, 7), 0);
        int taken = random.nextInt(parts.size() + 1);
        try (var rows = new SourceTask.Parts(settings, parts.iterator(), account)) {
            for (int number = 0; number < taken; number++) {
                assertTrue(rows.hasNext());
                rows.next();
                assertEquals(1, openFiles());
            }
        }
        assertEquals(0, openFiles());
    }
}

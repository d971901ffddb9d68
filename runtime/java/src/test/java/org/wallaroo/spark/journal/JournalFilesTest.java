package org.wallaroo.spark.journal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads a journal in files while it grows, segment by segment. */
class JournalFilesTest {
    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whatWasWrittenIsRead(long seed) throws IOException {
        Random random = new Random(seed);
        WrittenJournal journal = new WrittenJournal(directory);
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        try (JournalFiles reader = new JournalFiles(directory, new JournalOffset(WrittenJournal.ID, 0, 0))) {
            for (int step = 0; step < 200; step++) {
                int kind = random.nextInt(10);
                if (kind == 0) {
                    journal.begin();
                } else if (kind < 6) {
                    journal.append(0, 1, random.nextInt(300));
                } else {
                    byte[] frames = reader.read(journal.end().offset(), 1 + random.nextInt(1000));
                    if (frames != null) {
                        read.writeBytes(frames);
                    }
                }
            }
            for (byte[] frames; (frames = reader.read(journal.end().offset(), 500)) != null;) {
                read.writeBytes(frames);
            }
            assertNull(reader.read(journal.end().offset(), 1));
            assertArrayEquals(journal.bytes(), read.toByteArray());
            assertEquals(journal.end().messages(), reader.place().messages());
        }
    }

    /** In some locales Java formats numbers with other digits, e.g. Persian ones. */
    @Test
    void theLocaleMakesNoDifference() throws IOException {
        WrittenJournal journal = new WrittenJournal(directory);
        journal.append(0, 1, 10);
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("fa-IR"));
        try (JournalFiles reader = new JournalFiles(directory, new JournalOffset(WrittenJournal.ID, 0, 0))) {
            assertArrayEquals(journal.bytes(), reader.read(journal.end().offset(), 1000));
            assertEquals(journal.end(), JournalOffset.parse(journal.end().json()));
        } finally {
            Locale.setDefault(before);
        }
    }
}

package org.wallaroo.spark.journal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.zip.CRC32;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A journal of files that grows, segment by segment, while it is read. */
class JournalFilesTest {
    private static final long ID = 0x1234;

    @TempDir
    private Path directory;

    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private long base;
    private long sequence;

    private void begin() throws IOException {
        base = written.size();
        ByteBuffer header = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
        header.put("WJR1".getBytes(StandardCharsets.US_ASCII)).putInt(0).putLong(base).putLong(sequence).putLong(ID);
        Files.write(segment(), header.array());
    }

    private Path segment() {
        return directory.resolve(String.format("%020d.journal", base));
    }

    private void append(int bytes) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(40 + bytes).order(ByteOrder.LITTLE_ENDIAN);
        frame.put("WFR1".getBytes(StandardCharsets.US_ASCII)).putInt(0).putInt(1).putInt(bytes).putLong(sequence++);
        CRC32 crc = new CRC32();
        crc.update(frame.array(), 0, 36);
        crc.update(frame.array(), 40, bytes);
        frame.putInt(36, (int) crc.getValue());
        Files.write(segment(), frame.array(), StandardOpenOption.APPEND);
        written.writeBytes(frame.array());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whatWasWrittenIsRead(long seed) throws IOException {
        Random random = new Random(seed);
        begin();
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        try (JournalFiles reader = new JournalFiles(directory, new JournalOffset(ID, 0, 0))) {
            for (int step = 0; step < 200; step++) {
                int kind = random.nextInt(10);
                if (kind == 0 && written.size() > base) {
                    begin();
                } else if (kind < 6) {
                    append(random.nextInt(300));
                } else {
                    byte[] frames = reader.read(written.size(), 1 + random.nextInt(1000));
                    if (frames != null) {
                        read.writeBytes(frames);
                    }
                }
            }
            for (byte[] frames; (frames = reader.read(written.size(), 500)) != null;) {
                read.writeBytes(frames);
            }
            assertNull(reader.read(written.size(), 1));
            assertArrayEquals(written.toByteArray(), read.toByteArray());
            assertEquals(sequence, reader.place().messages());
        }
    }
}

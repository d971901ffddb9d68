package org.wallaroo.spark.realtime;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.message.FramesTest;

class LogLoaderTest {
    @TempDir
    Path folder;

    @Test
    void entriesOfAFileAreItsFrames() throws IOException {
        Random random = new Random(5);
        for (int round = 0; round < 50; round++) {
            List<byte[]> frames = new ArrayList<>();
            for (int i = random.nextInt(6); i > 0; i--) {
                byte[] body = new byte[random.nextInt(20_000)];
                random.nextBytes(body);
                frames.add(FramesTest.frame(3, 1, 0, body));
            }
            Path file = Files.write(folder.resolve("log.frames"), Frames.joined(frames));
            List<byte[]> entries = LogLoader.entriesOf(file);
            assertEquals(frames.size(), entries.size());
            for (int i = 0; i < frames.size(); i++) {
                assertArrayEquals(frames.get(i), entries.get(i));
            }
        }
    }

    @Test
    void aFileThatEndsWithinAFrameIsAnError() throws IOException {
        byte[] frame = FramesTest.frame(3, 1, 0, new byte[50]);
        Path file = Files.write(folder.resolve("log.frames"), Arrays.copyOf(frame, frame.length - 1));
        assertThrows(UncheckedIOException.class, () -> LogLoader.entriesOf(file));
    }
}

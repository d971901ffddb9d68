package org.wallaroo.spark.message;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.zip.CRC32;
import org.junit.jupiter.api.Test;

public class FramesTest {
    public static byte[] frame(int port, int count, long sequence, byte[] body) {
        return frame(0, port, count, sequence, body);
    }

    /** Returns a frame whose messages are empty and have the key {@code a}. */
    public static byte[] keyed(int port, int count) {
        byte[] body = new byte[9 + 2 * count];
        body[0] = 1; // keys
        body[4] = 1; // width of the column of the key's length
        body[5] = 1;
        body[6] = 'a';
        body[7] = 1; // width of the column of indexes
        body[8 + count] = 1; // width of the column of lengths
        return frame(1, port, count, 0, body);
    }

    public static byte[] withEncoding(byte[] frame, int encoding) {
        byte[] changed = frame.clone();
        changed[5] = (byte) encoding;
        CRC32 crc = new CRC32();
        crc.update(changed, 0, 36);
        crc.update(changed, 40, changed.length - 40);
        ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN).putInt(36, (int) crc.getValue());
        return changed;
    }

    public static byte[] frame(int flags, int port, int count, long sequence, byte[] body) {
        ByteBuffer buffer = ByteBuffer.allocate(Frames.HEADER_BYTES + body.length).order(ByteOrder.LITTLE_ENDIAN);
        buffer.put("WFR1".getBytes(java.nio.charset.StandardCharsets.US_ASCII)).put((byte) flags).put((byte) 0);
        buffer.putShort((short) port).putInt(count).putInt(body.length).putLong(sequence).putLong(0).putInt(0);
        CRC32 crc = new CRC32();
        crc.update(buffer.array(), 0, 36);
        crc.update(body);
        return buffer.putInt((int) crc.getValue()).put(body).array();
    }

    public static byte[] joined(byte[] first, byte[] second) {
        byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }

    @Test
    void framesAreChosenByPort() {
        byte[] first = frame(3, 2, 10, new byte[5]);
        byte[] tick = frame(Frames.TICK_PORT, 1, 12, new byte[1]);
        byte[] both = joined(first, tick);
        assertEquals(1, Frames.ofPorts(both, Set.of(3)).size());
        assertTrue(Arrays.equals(first, Frames.ofPorts(both, Set.of(3)).get(0)));
        assertTrue(Arrays.equals(both, Frames.joined(Frames.ofPorts(both, Set.of(3, Frames.TICK_PORT)))));
        assertEquals(0, Frames.ofPorts(both, Set.of(4)).size());
    }

    @Test
    void aTickForWorkersHasNoMessage() {
        byte[] tick = Frames.controlForWorker(frame(Frames.TICK_PORT, 1, 12, new byte[1]));
        Frames.Progress progress = Frames.verify(tick, 12);
        assertEquals("", progress.fault());
        assertEquals(Frames.HEADER_BYTES, progress.end());
        assertEquals(0, Frames.count(tick, 0));
        assertEquals(Frames.TICK_PORT, Frames.port(tick, 0));
    }

    @Test
    void wholeFramesAreCounted() {
        byte[] first = frame(3, 2, 10, new byte[5]);
        Frames.Progress found = Frames.verify(joined(first, frame(3, 4, 12, new byte[7])), 10);
        assertEquals(16, found.sequence());
        assertEquals(6, found.messages());
        assertEquals("", found.fault());
    }

    @Test
    void ticksAreNoMessages() {
        assertEquals(0, Frames.verify(frame(65534, 1, 10, new byte[0]), 10).messages());
    }

    @Test
    void aFrameThatIsNotWholeIsWaitedFor() {
        byte[] first = frame(3, 2, 10, new byte[5]);
        byte[] data = joined(first, frame(3, 4, 12, new byte[50]));
        Random random = new Random(7);
        for (int round = 0; round < 100; round++) {
            int cut = first.length + random.nextInt(data.length - first.length);
            Frames.Progress found = Frames.verify(Arrays.copyOf(data, cut), 10);
            assertEquals(first.length, found.end());
            assertEquals("", found.fault());
        }
    }

    @Test
    void everyChangedByteIsFound() {
        byte[] whole = frame(3, 2, 10, new byte[] {1, 2, 3, 4, 5});
        for (int at = 0; at < whole.length; at++) {
            byte[] changed = whole.clone();
            changed[at] ^= 1;
            Frames.Progress found = Frames.verify(changed, 10);
            assertTrue(found.end() == 0 && (!found.fault().isEmpty() || found.wanted() > whole.length), "byte " + at);
        }
    }

    @Test
    void aGapOfSequencesIsFound() {
        assertFalse(Frames.verify(frame(3, 2, 11, new byte[5]), 10).fault().isEmpty());
    }

    @Test
    void messagesAreCountedByPort() {
        byte[] both = joined(frame(3, 2, 10, new byte[5]), frame(4, 1, 12, new byte[7]));
        assertEquals(Map.of(3, 4L, 4, 1L), Frames.countByPort(joined(both, frame(3, 2, 13, new byte[0]))));
    }
}

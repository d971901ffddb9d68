package org.wallaroo.spark.message;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.zip.CRC32;

/** Computes the bucket of a key, and takes a sample of the keys in a frame (a block of many messages). */
public final class Keys {
    private static final long SPREAD = 0x9E3779B1L;
    private static final long MASK = 0xffffffffL;

    private Keys() {}

    /** Returns the bucket of a key: its CRC-32, spread by a multiplication and scaled to the number of buckets. */
    public static int bucketOf(byte[] key, int buckets) {
        CRC32 crc = new CRC32();
        crc.update(key);
        return (int) ((crc.getValue() * SPREAD & MASK) * buckets >>> 32);
    }

    /** Says whether the messages of a frame have keys. */
    public static boolean isKeyed(byte[] frame) {
        return (frame[4] & Columns.KEYS) != 0;
    }

    /**
     * Returns some distinct keys of a frame, for a check that reads no other column.
     *
     * @param frame whose header and checksum are right
     * @param most largest number of keys to return; the frame's sequence decides which keys these are
     * @throws IllegalArgumentException if the columns contradict each other
     */
    public static List<byte[]> sample(byte[] frame, int most) {
        ByteBuffer buffer = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        long sequence = buffer.getLong(16);
        return isKeyed(frame) ? Columns.keys(buffer.position(Frames.HEADER_BYTES), sequence, most) : List.of();
    }
}

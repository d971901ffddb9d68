package org.wallaroo.spark.microbatch;

import java.io.Serializable;

/**
 * What a topic takes.
 *
 * @param partitions how many it has
 * @param size of a record, in bytes
 * @param needsKey whether it refuses records without a key
 */
record TopicLimits(int partitions, int size, boolean needsKey) implements Serializable {
    private static final int BATCH_BYTES = 61;

    /** Returns why a record is refused; empty: it is not. */
    String refusal(byte[] key, byte[] value, Integer partition) {
        if (partition != null && (partition < 0 || partition >= partitions)) {
            return "it has no partition " + partition + ", but 0 to " + (partitions - 1);
        }
        long bytes = bytes(key, value);
        if (bytes > size) {
            return "the record has " + bytes + " bytes; " + size + " are possible, with key and batch";
        }
        return needsKey && key == null ? "it is compacted, and the record has no key" : "";
    }

    /** Returns how many bytes a record has as brokers count them: alone in its batch, and not compressed. */
    static long bytes(byte[] key, byte[] value) {
        long bytes = 3 + piece(key) + piece(value) + 1; // no headers
        return bytes + BATCH_BYTES + varint(bytes);
    }

    /** Returns how many bytes data have with their length; none are a length of -1. */
    private static long piece(byte[] data) {
        return data == null ? 1 : varint(data.length) + (long) data.length;
    }

    /** Returns how many bytes a number has that is not negative: seven bits in each, one bit for the sign. */
    private static int varint(long number) {
        int bits = Long.SIZE - Long.numberOfLeadingZeros(number) + 1;
        return (bits + 6) / 7;
    }
}

package org.wallaroo.spark.microbatch;

import java.io.Serializable;

/**
 * What a topic takes, and Kafka's client.
 *
 * @param partitions how many it has
 * @param size of a record that the topic takes, in bytes as brokers count them
 * @param request of a record that the client takes, in bytes as the client counts them
 * @param needsKey whether it refuses records without a key
 */
record TopicLimits(int partitions, int size, int request, boolean needsKey) implements Serializable {
    private static final int BATCH_BYTES = 61;
    private static final int MOST_RECORD_BYTES = 21; // that the client thinks a record may have besides its contents

    /** Returns why a record is refused; empty: it is not. */
    String refusal(byte[] key, byte[] value, Integer partition) {
        if (partition != null && (partition < 0 || partition >= partitions)) {
            return "it has no partition " + partition + ", but 0 to " + (partitions - 1);
        }
        long bytes = bytes(key, value);
        long bound = BATCH_BYTES + MOST_RECORD_BYTES + contents(key, value);
        if (bytes > size && size <= request) { // of two limits the smaller one is to be raised first
            return "the record has " + bytes + " bytes; " + size + " are possible, with key and batch";
        }
        if (bound > request) {
            return "the record has " + bound + " bytes as Kafka's client counts them; " + request + " are possible";
        }
        return needsKey && key == null ? "it is compacted, and the record has no key" : "";
    }

    /** Returns how many bytes a record has as brokers count them: alone in its batch, and not compressed. */
    static long bytes(byte[] key, byte[] value) {
        long bytes = 3 + contents(key, value);
        return bytes + BATCH_BYTES + varint(bytes);
    }

    private static long contents(byte[] key, byte[] value) {
        return piece(key) + piece(value) + 1; // no headers
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

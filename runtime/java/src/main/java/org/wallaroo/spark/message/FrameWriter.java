package org.wallaroo.spark.message;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Collects messages, and writes them as one frame. */
public final class FrameWriter {
    private static final byte[] NONE = {};

    private final int port;
    private final boolean hasKeys;
    private final Map<ByteBuffer, Integer> keys = new LinkedHashMap<>(); // position of each distinct key
    private final List<byte[]> headers = new ArrayList<>();
    private final List<byte[]> values = new ArrayList<>();
    private final BitSet absent = new BitSet();
    private long[] keyIndexes = new long[16];
    private long[] sequences = new long[16];
    private long[] times = new long[16];
    private boolean hasHeaders;

    /**
     * Begins a frame without messages.
     *
     * @param port of the frame
     * @param hasKeys whether its messages have keys
     */
    public FrameWriter(int port, boolean hasKeys) {
        this.port = port;
        this.hasKeys = hasKeys;
    }

    /**
     * Adds a message.
     *
     * @param timeMs in milliseconds since 1970
     * @param key null if the message has no key
     * @param header the encoded form of all headers of the message
     * @param value null if the message has no value
     */
    public void add(long sequence, long timeMs, byte[] key, byte[] header, byte[] value) {
        int at = values.size();
        if (at == sequences.length) {
            sequences = Arrays.copyOf(sequences, 2 * at);
            times = Arrays.copyOf(times, 2 * at);
            keyIndexes = Arrays.copyOf(keyIndexes, 2 * at);
        }
        sequences[at] = sequence;
        times[at] = timeMs;
        if (hasKeys) {
            Integer known = keys.putIfAbsent(ByteBuffer.wrap(key == null ? NONE : key), keys.size());
            keyIndexes[at] = known == null ? keys.size() - 1 : known;
        }
        headers.add(header);
        hasHeaders |= header.length > 0;
        values.add(value == null ? NONE : value);
        absent.set(at, value == null);
    }

    /** Returns the number of messages. */
    public int count() {
        return values.size();
    }

    /** Returns the time of each message. */
    public long[] times() {
        return Arrays.copyOf(times, count());
    }

    /** Returns the frame. */
    public byte[] toBytes() {
        long earliest = Arrays.stream(times, 0, count()).min().orElse(0);
        long[] later = Arrays.stream(times, 0, count()).map(time -> time - earliest).toArray();
        return new Columns(port, 0, 0, earliest, keys.keySet().stream().map(ByteBuffer::array).toList(),
                hasKeys ? Arrays.copyOf(keyIndexes, count()) : new long[0], new long[0],
                Arrays.stream(later).allMatch(time -> time == 0) ? new long[0] : later,
                hasHeaders ? headers : List.of(), absent, values)
                .withSequences(Arrays.copyOf(sequences, count())).toBytes();
    }
}

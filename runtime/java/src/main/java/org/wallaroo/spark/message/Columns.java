package org.wallaroo.spark.message;

import java.io.ByteArrayOutputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * The columns of a frame; SPECIFICATION.md, section 2, has the layout. A column that the frame does not have is empty.
 *
 * @param encoding of the values; framed values are not supported
 * @param sequence in the header of the frame
 * @param timestamp in the header of the frame
 * @param keys distinct keys
 * @param keyIndexes for each message the position of its key in {@code keys}
 * @param sequences for each message the difference from {@code sequence}
 * @param times for each message the difference from {@code timestamp}
 * @param headers for each message its encoded headers
 * @param absent positions of messages without a value
 * @param values for each message its value
 */
public record Columns(
        int port, int encoding, long sequence, long timestamp, List<byte[]> keys, long[] keyIndexes, long[] sequences,
        long[] times, List<byte[]> headers, BitSet absent, List<byte[]> values) {
    static final int KEYS = 1;
    private static final int SEQUENCES = 2;
    private static final int TIMESTAMPS = 4;
    private static final int HEADERS = 8;
    private static final int ABSENT = 16;
    private static final int ARRAY_BYTES = 64 << 10;

    /**
     * Reads a frame whose header and checksum are right.
     *
     * @throws IllegalArgumentException if its columns contradict each other, or its values are framed
     */
    public static Columns read(byte[] frame) {
        ByteBuffer buffer = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        int flags = frame[4];
        if (frame[5] == Frames.FRAMED) {
            throw new IllegalArgumentException("the values are framed");
        }
        int count = buffer.getInt(8);
        buffer.position(Frames.HEADER_BYTES);
        try {
            List<byte[]> keys = (flags & KEYS) != 0 ? pieces(buffer, buffer.getInt()) : List.of();
            long[] indexes = column(buffer, (flags & KEYS) != 0, count);
            for (long index : indexes) {
                if (index < 0 || index >= keys.size()) {
                    throw new IllegalArgumentException("a key index of " + index + "; the frame has " + keys.size());
                }
            }
            long[] sequences = column(buffer, (flags & SEQUENCES) != 0, count);
            long[] times = column(buffer, (flags & TIMESTAMPS) != 0, count);
            List<byte[]> headers = (flags & HEADERS) != 0 ? pieces(buffer, count) : List.of();
            BitSet absent = BitSet.valueOf(take(buffer, (flags & ABSENT) != 0 ? (count + 7L) / 8 : 0));
            List<byte[]> values = pieces(buffer, count);
            if (buffer.hasRemaining()) {
                throw new IllegalArgumentException(buffer.remaining() + " bytes follow the values");
            }
            return new Columns(Frames.port(frame, 0), frame[5] & 255, buffer.getLong(16), buffer.getLong(24), keys,
                    indexes, sequences, times, headers, absent, values);
        } catch (BufferUnderflowException error) {
            throw new IllegalArgumentException("a section is longer than the body", error);
        }
    }

    /** Returns the columns of a new frame in which each value has its own key. */
    public static Columns keyed(int port, int encoding, List<byte[]> keys, List<byte[]> headers, List<byte[]> values) {
        return new Columns(port, encoding, 0, 0, keys, LongStream.range(0, keys.size()).toArray(), new long[0], new long[0],
                headers, new BitSet(), values);
    }

    /** Returns the number of messages. */
    public int count() {
        return values.size();
    }

    /** Returns the sequence of a message. */
    public long sequence(int index) {
        return sequence + (sequences.length == 0 ? index : sequences[index]);
    }

    /** Returns the time of a message in milliseconds since 1970. */
    public long time(int index) {
        return timestamp + (times.length == 0 ? 0 : times[index]);
    }

    /** Returns the same messages with other sequences: {@code numbers} has the new sequence of each message. */
    public Columns withSequences(long[] numbers) {
        long first = Arrays.stream(numbers).reduce((one, two) -> Long.compareUnsigned(one, two) < 0 ? one : two).orElse(0);
        long[] offsets = Arrays.stream(numbers).map(number -> number - first).toArray();
        boolean isDense = IntStream.range(0, offsets.length).allMatch(at -> offsets[at] == at);
        return new Columns(port, encoding, first, timestamp, keys, keyIndexes, isDense ? new long[0] : offsets, times, headers,
                absent, values);
    }

    /** Returns the key of a message, or an empty array if the message has no key. */
    public byte[] key(int index) {
        return keys.isEmpty() ? new byte[0] : keys.get((int) keyIndexes[index]);
    }

    /**
     * Returns the values, which are JSON, as JSON arrays of about 64 KiB. Spark's parser takes a buffer of 8 KiB for
     * each text, so a few long texts cost less than many short ones.
     */
    public List<byte[]> arrays() {
        List<byte[]> arrays = new ArrayList<>();
        ByteArrayOutputStream array = new ByteArrayOutputStream();
        for (int i = 0; i < count(); i++) {
            array.write(array.size() == 0 ? '[' : ',');
            array.writeBytes(values.get(i));
            if (array.size() >= ARRAY_BYTES || i + 1 == count()) {
                array.write(']');
                arrays.add(array.toByteArray());
                array.reset();
            }
        }
        return arrays;
    }

    /**
     * Returns the columns as a whole frame.
     *
     * @throws IllegalArgumentException if the body would be longer than a frame permits
     */
    public byte[] toBytes() {
        int flags = 0;
        List<byte[]> parts = new ArrayList<>();
        if (!keys.isEmpty()) {
            flags |= KEYS;
            parts.add(number(keys.size()));
            addPieces(parts, keys);
            parts.add(column(keyIndexes));
        }
        if (sequences.length > 0) {
            flags |= SEQUENCES;
            parts.add(column(sequences));
        }
        if (times.length > 0) {
            flags |= TIMESTAMPS;
            parts.add(column(times));
        }
        if (!headers.isEmpty()) {
            flags |= HEADERS;
            addPieces(parts, headers);
        }
        if (!absent.isEmpty()) {
            flags |= ABSENT;
            parts.add(Arrays.copyOf(absent.toByteArray(), (count() + 7) / 8));
        }
        addPieces(parts, values);
        return whole(flags, parts);
    }

    private byte[] whole(int flags, List<byte[]> parts) {
        long body = parts.stream().mapToLong(part -> part.length).sum();
        if (body > Frames.MAX_BODY_BYTES) {
            throw new IllegalArgumentException(
                    "the body has " + body + " bytes; at most " + Frames.MAX_BODY_BYTES + " fit into a frame");
        }
        ByteBuffer frame = Frames.begun(flags, encoding, port, count(), (int) body, sequence, timestamp);
        parts.forEach(frame::put);
        return Frames.checked(frame);
    }

    private static byte[] number(int value) {
        return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value).array();
    }

    private static void addPieces(List<byte[]> parts, List<byte[]> pieces) {
        parts.add(column(pieces.stream().mapToLong(piece -> piece.length).toArray()));
        parts.addAll(pieces);
    }

    /** Returns up to {@code most} keys of a frame's body as a sample, whose beginning varies with the sequence. */
    static List<byte[]> keys(ByteBuffer body, long sequence, int most) {
        try {
            long[] lengths = column(body, true, body.getInt());
            int first = lengths.length > most ? (int) Long.remainderUnsigned(sequence, lengths.length) : 0;
            List<byte[]> found = new ArrayList<>();
            for (int at = 0; at < Math.min(lengths.length, first + most); at++) {
                byte[] key = take(body, lengths[at]);
                if (at >= first) {
                    found.add(key);
                }
            }
            return found;
        } catch (BufferUnderflowException error) {
            throw new IllegalArgumentException("a section is longer than the body", error);
        }
    }

    private static List<byte[]> pieces(ByteBuffer buffer, int count) {
        List<byte[]> found = new ArrayList<>();
        for (long length : column(buffer, true, count)) {
            found.add(take(buffer, length));
        }
        return found;
    }

    private static byte[] take(ByteBuffer buffer, long size) {
        if (size < 0 || size > buffer.remaining()) {
            throw new BufferUnderflowException();
        }
        byte[] taken = new byte[(int) size];
        buffer.get(taken);
        return taken;
    }

    private static long[] column(ByteBuffer buffer, boolean isThere, int count) {
        if (!isThere) {
            return new long[0];
        }
        int width = buffer.get();
        if (width != 1 && width != 2 && width != 4 && width != 8) {
            throw new IllegalArgumentException("a column has width " + width);
        }
        if (count < 0 || (long) count * width > buffer.remaining()) {
            throw new BufferUnderflowException();
        }
        long[] found = new long[count];
        for (int i = 0; i < count; i++) {
            found[i] = switch (width) {
                case 1 -> buffer.get() & 0xffL;
                case 2 -> buffer.getShort() & 0xffffL;
                case 4 -> buffer.getInt() & 0xffffffffL;
                default -> buffer.getLong();
            };
        }
        return found;
    }

    private static byte[] column(long[] numbers) {
        long bits = 0;
        for (long number : numbers) {
            bits |= number;
        }
        int width = bits >>> 8 == 0 ? 1 : bits >>> 16 == 0 ? 2 : bits >>> 32 == 0 ? 4 : 8;
        ByteBuffer buffer = ByteBuffer.allocate(1 + width * numbers.length).put((byte) width);
        for (long number : numbers) {
            for (int i = 0; i < width; i++) {
                buffer.put((byte) (number >> 8 * i));
            }
        }
        return buffer.array();
    }
}

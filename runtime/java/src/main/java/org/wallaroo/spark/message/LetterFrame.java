package org.wallaroo.spark.message;

import com.google.protobuf.InvalidProtocolBufferException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import wallaroo.worker.v1.WorkerOuterClass.DeadLetter;

/**
 * A frame of dead letters.
 *
 * @param timestamp of the frame
 * @param letters in the order of the frame
 */
public record LetterFrame(long timestamp, List<Letter> letters) {
    static final int KEYS = 1;
    static final int SEQUENCES = 2;
    static final int TIMESTAMPS = 4;
    static final int HEADERS = 8;
    private static final int ABSENT = 16;

    /**
     * A dead letter.
     *
     * @param sequence of the source message
     * @param path of what failed
     * @param value a serialized {@code DeadLetter}
     */
    public record Letter(long sequence, String path, byte[] value) {}

    /**
     * Reads a frame whose header and checksum are right.
     *
     * @throws IllegalArgumentException its columns contradict each other, or a value is no dead letter
     */
    public static LetterFrame read(byte[] frame) {
        ByteBuffer buffer = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        int flags = frame[4];
        int count = buffer.getInt(8);
        buffer.position(Frames.HEADER_BYTES);
        try {
            if ((flags & KEYS) != 0) {
                skipPieces(buffer, buffer.getInt());
                column(buffer, count);
            }
            long[] sequences = (flags & SEQUENCES) != 0 ? column(buffer, count) : null;
            if ((flags & TIMESTAMPS) != 0) {
                column(buffer, count);
            }
            if ((flags & HEADERS) != 0) {
                skipPieces(buffer, count);
            }
            skip(buffer, (flags & ABSENT) != 0 ? (count + 7L) / 8 : 0);
            List<Letter> letters = new ArrayList<>();
            long[] lengths = column(buffer, count);
            for (int i = 0; i < count; i++) {
                long sequence = buffer.getLong(16) + (sequences == null ? i : sequences[i]);
                byte[] value = take(buffer, lengths[i]);
                letters.add(new Letter(sequence, DeadLetter.parseFrom(value).getPath(), value));
            }
            if (buffer.hasRemaining()) {
                throw new IllegalArgumentException(buffer.remaining() + " bytes follow the values");
            }
            return new LetterFrame(buffer.getLong(24), letters);
        } catch (BufferUnderflowException error) {
            throw new IllegalArgumentException("a section is longer than the body", error);
        } catch (InvalidProtocolBufferException error) {
            throw new IllegalArgumentException("a value is no DeadLetter: " + error.getMessage(), error);
        }
    }

    /** Returns a whole frame of the letters. */
    public byte[] toBytes() {
        long first = letters.stream().mapToLong(Letter::sequence).min().orElse(0);
        byte[] sequences = column(letters.stream().mapToLong(letter -> letter.sequence() - first).toArray());
        byte[] lengths = column(letters.stream().mapToLong(letter -> letter.value().length).toArray());
        int values = letters.stream().mapToInt(letter -> letter.value().length).sum();
        int body = sequences.length + lengths.length + values;
        ByteBuffer buffer = ByteBuffer.allocate(Frames.HEADER_BYTES + body).order(ByteOrder.LITTLE_ENDIAN);
        buffer.put("WFR1".getBytes(java.nio.charset.StandardCharsets.US_ASCII)).put((byte) SEQUENCES).put((byte) 0);
        buffer.putShort((short) Frames.DEAD_LETTER_PORT).putInt(letters.size()).putInt(body);
        buffer.putLong(first).putLong(timestamp).putInt(0).putInt(0).put(sequences).put(lengths);
        letters.forEach(letter -> buffer.put(letter.value()));
        CRC32 crc = new CRC32();
        crc.update(buffer.array(), 0, Frames.HEADER_BYTES - 4);
        crc.update(buffer.array(), Frames.HEADER_BYTES, body);
        return buffer.putInt(Frames.HEADER_BYTES - 4, (int) crc.getValue()).array();
    }

    static byte[] take(ByteBuffer buffer, long size) {
        if (size < 0 || size > buffer.remaining()) {
            throw new BufferUnderflowException();
        }
        byte[] taken = new byte[(int) size];
        buffer.get(taken);
        return taken;
    }

    private static void skip(ByteBuffer buffer, long size) {
        if (size < 0 || size > buffer.remaining()) {
            throw new BufferUnderflowException();
        }
        buffer.position(buffer.position() + (int) size);
    }

    private static void skipPieces(ByteBuffer buffer, int count) {
        for (long length : column(buffer, count)) {
            skip(buffer, length);
        }
    }

    static long[] column(ByteBuffer buffer, int count) {
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
        long most = 0;
        for (long number : numbers) {
            most = Math.max(most, number);
        }
        int width = most < 1L << 8 ? 1 : most < 1L << 16 ? 2 : most < 1L << 32 ? 4 : 8;
        ByteBuffer buffer = ByteBuffer.allocate(1 + width * numbers.length).put((byte) width);
        for (long number : numbers) {
            for (int i = 0; i < width; i++) {
                buffer.put((byte) (number >> 8 * i));
            }
        }
        return buffer.array();
    }
}

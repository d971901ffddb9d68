package org.wallaroo.spark.message;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;

/** Reads and writes the headers of frames; SPECIFICATION.md, section 2, has the layout. */
public final class Frames {
    /** Bytes of a header. */
    public static final int HEADER_BYTES = 40;
    /** Port of dead letters. */
    public static final int DEAD_LETTER_PORT = 65535;

    /** Port of ticks. */
    public static final int TICK_PORT = 65534;

    /** Port of visits. */
    public static final int VISIT_PORT = 65533;

    /** Encoding of values that the worker still has to cut into messages. */
    public static final int FRAMED = 1;

    private static final int MAGIC = 0x31524657; // WFR1
    public static final int MAX_BODY_BYTES = 67_108_824;
    private static final int KNOWN_FLAGS = 31;
    private static final int CHECKED_HEADER_BYTES = 36;

    private Frames() {}

    /**
     * The result of {@link #verify}: the undamaged part of a series of frames, and the fault after this part.
     *
     * @param end position after the last undamaged frame
     * @param sequence that the next frame must have
     * @param messages number of messages in the undamaged frames; ticks and visits are not counted
     * @param wanted length of the frame at {@code end}, or of a header if that length is not known
     * @param fault of the frame at {@code end}; empty if the frame is only incomplete
     */
    public record Progress(int end, long sequence, long messages, int wanted, String fault) {}

    /**
     * Walks over frames, and verifies layout, checksum and sequences.
     *
     * @param data begins at a frame boundary
     * @param sequence that the first frame must have; -1 if it may have any
     */
    public static Progress verify(byte[] data, long sequence) {
        ByteBuffer view = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
        int at = 0;
        long messages = 0;
        while (data.length - at >= HEADER_BYTES) {
            int body = view.getInt(at + 12);
            if (view.getInt(at) != MAGIC || body < 0 || body > MAX_BODY_BYTES || (data[at + 4] & ~KNOWN_FLAGS) != 0
                    || view.getInt(at + 32) != 0) {
                return new Progress(at, sequence, messages, HEADER_BYTES, "no frame begins here");
            }
            int end = at + HEADER_BYTES + body;
            if (end > data.length) {
                return new Progress(at, sequence, messages, end - at, "");
            }
            if (checksum(data, at, body) != view.getInt(at + CHECKED_HEADER_BYTES)) {
                return new Progress(at, sequence, messages, HEADER_BYTES, "the checksum of the frame does not fit");
            }
            long first = view.getLong(at + 16);
            if (sequence >= 0 && first != sequence) {
                String fault = "the frame has sequence " + first + "; expected " + sequence;
                return new Progress(at, sequence, messages, HEADER_BYTES, fault);
            }
            int count = view.getInt(at + 8);
            messages += isControl(port(data, at)) ? 0 : count;
            sequence = first + count;
            at = end;
        }
        return new Progress(at, sequence, messages, HEADER_BYTES, "");
    }

    /**
     * Returns the port in the header of a frame.
     *
     * @param data contains the frame
     * @param at position at which the frame begins
     */
    public static int port(byte[] data, int at) {
        return (data[at + 6] & 255) | (data[at + 7] & 255) << 8;
    }

    /** Returns the number of messages in frames, by port. */
    public static Map<Integer, Long> countByPort(byte[] frames) {
        Map<Integer, Long> found = new HashMap<>();
        for (int at = 0; at < frames.length; at += bytes(frames, at)) {
            found.merge(port(frames, at), count(frames, at), Long::sum);
        }
        return found;
    }

    /** Returns copies of the frames that have one of the ports. */
    public static List<byte[]> ofPorts(byte[] frames, Set<Integer> ports) {
        List<byte[]> found = new ArrayList<>();
        for (int at = 0; at < frames.length; at += bytes(frames, at)) {
            if (ports.contains(port(frames, at))) {
                found.add(Arrays.copyOfRange(frames, at, at + bytes(frames, at)));
            }
        }
        return found;
    }

    /** Returns the bytes of all frames, one frame after the other. */
    public static byte[] joined(List<byte[]> frames) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        frames.forEach(all::writeBytes);
        return all.toByteArray();
    }

    /** Says whether a port has ticks or visits. These are not messages, and go to all buckets of a stage. */
    public static boolean isControl(int port) {
        return port == TICK_PORT || port == VISIT_PORT;
    }

    /** Returns a tick or visit of the journal in the form for workers, in which a tick is a frame of 0 messages. */
    public static byte[] controlForWorker(byte[] frame) {
        ByteBuffer view = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        return port(frame, 0) != TICK_PORT ? frame : tick(view.getLong(16), view.getLong(24));
    }

    /** Returns the time in the header of a frame. */
    public static long timeMs(byte[] frame) {
        return ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).getLong(24);
    }

    /** Returns a tick in the form for workers. */
    public static byte[] tick(long sequence, long timeMs) {
        return checked(begun(0, FRAMED, TICK_PORT, 0, 0, sequence, timeMs));
    }

    /** Returns a copy of a tick or visit with another sequence, which decides its place in the order of messages. */
    public static byte[] withSequence(byte[] frame, long sequence) {
        return checked(ByteBuffer.wrap(frame.clone()).order(ByteOrder.LITTLE_ENDIAN).putLong(16, sequence));
    }

    /** Returns a buffer with the header of a frame, positioned at the body. The checksum is still missing. */
    static ByteBuffer begun(int flags, int encoding, int port, int count, int body, long sequence, long timestamp) {
        return ByteBuffer.allocate(HEADER_BYTES + body).order(ByteOrder.LITTLE_ENDIAN).putInt(MAGIC).put((byte) flags)
                .put((byte) encoding).putShort((short) port).putInt(count).putInt(body).putLong(sequence)
                .putLong(timestamp).putLong(0);
    }

    /** Writes the checksum into a frame, and returns the frame. */
    static byte[] checked(ByteBuffer frame) {
        int checksum = checksum(frame.array(), 0, frame.capacity() - HEADER_BYTES);
        return frame.putInt(CHECKED_HEADER_BYTES, checksum).array();
    }

    private static int checksum(byte[] data, int at, int body) {
        CRC32 crc = new CRC32();
        crc.update(data, at, CHECKED_HEADER_BYTES);
        crc.update(data, at + HEADER_BYTES, body);
        return (int) crc.getValue();
    }

    /** Returns the number of messages that the header of a frame announces. */
    public static long count(byte[] data, int at) {
        return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN).getInt(at + 8) & 0xffffffffL;
    }

    /** Returns the length of the frame whose header is at a position. */
    public static int bytes(byte[] data, int at) {
        return HEADER_BYTES + ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN).getInt(at + 12);
    }
}

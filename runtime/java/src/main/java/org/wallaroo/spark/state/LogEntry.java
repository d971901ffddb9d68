package org.wallaroo.spark.state;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;

/** An entry of a state log: a frame with keys, whose values are states; see SPECIFICATION.md, sections 2 and 4. */
final class LogEntry {
    private static final int KEYS = 1;
    private static final int SEQUENCES = 2;
    private static final int TIMESTAMPS = 4;
    private static final int HEADERS = 8;
    private static final int ABSENT = 16;
    private static final int FRAMED = 1;
    private static final byte[] PIECE = "piece".getBytes(StandardCharsets.US_ASCII);
    private static final int PIECE_BYTES = 2 + PIECE.length + 4 + 8;

    final int port;
    final int encoding;
    final int count;
    /** Number of the piece in this entry; -1 if the entry has whole states. */
    final int piece;
    /** The number of pieces of the state. */
    final int pieces;
    private final byte[] data;
    private final int[] keyStarts; // starts of distinct keys, and the end of the last key
    private final long[] keyIndexes;
    private final int[] valueStarts; // starts of values, and the end of the last value
    private final byte[] absent;

    /**
     * Reads an entry.
     *
     * @throws OperatorFailure R664 if the entry is damaged
     */
    LogEntry(byte[] data) {
        this.data = data;
        Frames.Progress progress = Frames.verify(data, -1);
        int body = data.length < Frames.HEADER_BYTES ? 0 : Frames.bytes(data, 0);
        if (body != data.length || progress.end() != data.length) {
            throw damaged(progress.fault().isEmpty() ? "an entry is not one whole frame" : progress.fault());
        }
        int flags = data[4];
        encoding = data[5] & 255;
        port = Frames.port(data, 0);
        count = (int) Frames.count(data, 0);
        EntryColumns columns = new EntryColumns(data);
        int distinct = (flags & KEYS) != 0 ? columns.number() : 0;
        keyStarts = columns.pieces(distinct);
        keyIndexes = (flags & KEYS) != 0 ? columns.column(count) : new long[0];
        for (long index : keyIndexes) {
            check(index >= 0 && index < distinct, "a key index of " + index + "; the frame has " + distinct + " keys");
        }
        check(keyIndexes.length == count && encoding != FRAMED, "an entry has no keys, or values without lengths");
        for (int flag : new int[] {SEQUENCES, TIMESTAMPS}) {
            if ((flags & flag) != 0) {
                columns.column(count);
            }
        }
        int[] headers = (flags & HEADERS) != 0 ? columns.pieces(count) : new int[] {0};
        absent = (flags & ABSENT) != 0 ? columns.bytes((count + 7) / 8) : new byte[(count + 7) / 8];
        valueStarts = columns.pieces(count);
        check(valueStarts[count] == data.length, "bytes follow the values of an entry");
        int size = headers[headers.length - 1] - headers[0];
        ByteBuffer header = ByteBuffer.wrap(data, headers[0], size).order(ByteOrder.LITTLE_ENDIAN);
        if (size == 0) {
            piece = -1;
            pieces = 0;
            return;
        }
        check(count == 1 && distinct == 1 && !isAbsent(0) && size == PIECE_BYTES && isPiece(header),
                "an entry of a state log has headers that are not those of a piece");
        piece = header.getInt();
        pieces = header.getInt();
        check(piece >= 0 && piece < pieces && pieces > 1, "piece " + piece + " of " + pieces);
    }

    private static boolean isPiece(ByteBuffer header) {
        byte[] name = new byte[PIECE.length];
        return header.getShort() == name.length && header.get(name) != null && Arrays.equals(name, PIECE)
                && header.getInt() == 8;
    }

    private static void check(boolean isGood, String fault) {
        if (!isGood) {
            throw damaged(fault);
        }
    }

    static OperatorFailure damaged(String fault) {
        return OperatorFailure.of("R664", "reason", "the log of a bucket is damaged: " + fault);
    }

    StateKey key(int number) {
        int at = (int) keyIndexes[number];
        return new StateKey(port, Arrays.copyOfRange(data, keyStarts[at], keyStarts[at + 1]));
    }

    boolean isAbsent(int number) {
        return (absent[number >> 3] >> (number & 7) & 1) != 0;
    }

    int size(int number) {
        return valueStarts[number + 1] - valueStarts[number];
    }

    byte[] value(int number) {
        return Arrays.copyOfRange(data, valueStarts[number], valueStarts[number + 1]);
    }

    /** Reads the columns of an entry's body in their order, and never past the end of the body. */
    private static final class EntryColumns {
        private final ByteBuffer body;

        EntryColumns(byte[] data) {
            body = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN).position(Frames.HEADER_BYTES);
        }

        private void need(long size) {
            check(size >= 0 && size <= body.remaining(),
                    "a section of " + size + " bytes; " + body.remaining() + " are left in the body");
        }

        int number() {
            need(4);
            return body.getInt();
        }

        byte[] bytes(int size) {
            need(size);
            byte[] found = new byte[size];
            body.get(found);
            return found;
        }

        long[] column(int count) {
            need(1);
            int width = body.get();
            check(width == 1 || width == 2 || width == 4 || width == 8,
                    "a column of width " + width + "; expected 1, 2, 4 or 8");
            need((long) count * width);
            long[] found = new long[count];
            for (int i = 0; i < count; i++) {
                found[i] = switch (width) {
                    case 1 -> body.get() & 255L;
                    case 2 -> body.getShort() & 0xFFFFL;
                    case 4 -> body.getInt() & 0xFFFFFFFFL;
                    default -> body.getLong();
                };
            }
            return found;
        }

        /** Reads a column of lengths. Returns the start of each piece, and the end of the last piece. */
        int[] pieces(int count) {
            need(count);
            long[] lengths = count == 0 && body.remaining() == 0 ? new long[0] : column(count);
            int[] starts = new int[count + 1];
            long at = body.position();
            for (int i = 0; i < count; i++) {
                starts[i] = (int) at;
                at += lengths[i];
                check(lengths[i] >= 0 && at <= body.limit(), "values of an entry pass its end");
            }
            starts[count] = (int) at;
            body.position((int) at);
            return starts;
        }
    }
}

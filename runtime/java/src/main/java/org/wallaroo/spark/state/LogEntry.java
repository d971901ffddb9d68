package org.wallaroo.spark.state;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.wallaroo.spark.message.Columns;
import org.wallaroo.spark.message.Frames;
import org.wallaroo.spark.query.OperatorFailure;

/** An entry of a state log: a frame with keys, whose values are states; see SPECIFICATION.md, sections 2 and 4. */
final class LogEntry {
    private static final String PIECE = "piece"; // name of the header of a piece
    private static final int NUMBERS = 2 + PIECE.length() + 4; // position of the two numbers in this header
    private static final int PIECE_BYTES = NUMBERS + 8;

    final int encoding;
    final int count;

    /** Number of the piece of a large state that this entry has; -1 if the entry has whole states. */
    final int piece;

    /** Number of pieces of the large state; 0 if the entry has whole states. */
    final int pieces;

    private final Columns columns;

    /**
     * Reads an entry.
     *
     * @throws OperatorFailure R664 if the entry is damaged
     */
    LogEntry(byte[] data) {
        Frames.Progress progress = Frames.verify(data, -1);
        int body = data.length < Frames.HEADER_BYTES ? 0 : Frames.bytes(data, 0);
        if (body != data.length || progress.end() != data.length) {
            throw damaged(progress.fault().isEmpty() ? "an entry is not one whole frame" : progress.fault());
        }
        columns = columns(data);
        encoding = columns.encoding();
        count = columns.count();
        check(columns.keyIndexes().length == count, "an entry has no keys");
        if (columns.headers().stream().allMatch(header -> header.length == 0)) {
            piece = -1;
            pieces = 0;
            return;
        }
        byte[] header = columns.headers().get(0);
        check(count == 1 && columns.keys().size() == 1 && !isAbsent(0) && header.length == PIECE_BYTES
                && Arrays.equals(header, 0, NUMBERS, pieceHeader(0, 0), 0, NUMBERS),
                "an entry of a state log has headers that are not those of a piece");
        ByteBuffer numbers = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).position(NUMBERS);
        piece = numbers.getInt();
        pieces = numbers.getInt();
        check(piece >= 0 && piece < pieces && pieces > 1, "piece " + piece + " of " + pieces);
    }

    private static Columns columns(byte[] data) {
        try {
            return Columns.read(data);
        } catch (IllegalArgumentException error) {
            throw damaged(error.getMessage());
        }
    }

    /** Returns the encoded header of an entry with a piece of a large state. */
    static byte[] pieceHeader(int number, int count) {
        return ByteBuffer.allocate(PIECE_BYTES).order(ByteOrder.LITTLE_ENDIAN).putShort((short) PIECE.length())
                .put(PIECE.getBytes(StandardCharsets.US_ASCII)).putInt(8).putInt(number).putInt(count).array();
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
        return new StateKey(columns.port(), columns.key(number));
    }

    boolean isAbsent(int number) {
        return columns.absent().get(number);
    }

    byte[] value(int number) {
        return columns.values().get(number);
    }
}

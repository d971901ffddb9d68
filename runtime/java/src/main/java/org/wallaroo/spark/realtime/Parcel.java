package org.wallaroo.spark.realtime;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A row between two operators: frames, or a word to the operators after the source.
 *
 * @param kind what the row is
 * @param offset of the journal: all before it was given to the operator that made the row
 * @param messages of the journal before that offset
 * @param items the frames, each with where it goes
 */
public record Parcel(Kind kind, long offset, long messages, List<Item> items) {
    private static final int HEADER_BYTES = 21;
    private static final int ITEM_BYTES = 16;

    /** What a row is. */
    public enum Kind {
        /** Frames. */
        FRAMES,
        /** The journal has nothing more for now: answers that are under way are awaited. */
        IDLE,
        /** Open calls end now, so that less has to be repeated when a worker dies. */
        FLUSH,
        /** The input of the batch has ended; no row follows. */
        END
    }

    /**
     * A frame.
     *
     * @param port of the exit that it left
     * @param bucket that it goes to; -1: none
     * @param origin which stage gave it, and for which bucket: a number of its own for each; -1: the first stage
     * @param frame one whole frame; in rows of the source one or more
     */
    public record Item(int port, int bucket, int origin, byte[] frame) {}

    /**
     * Returns a row without frames.
     *
     * @param kind what it says
     * @param offset of the journal
     * @param messages before it
     */
    public static Parcel of(Kind kind, long offset, long messages) {
        return new Parcel(kind, offset, messages, List.of());
    }

    /** Returns the row as bytes. */
    public byte[] toBytes() {
        int size = HEADER_BYTES;
        for (Item item : items) {
            size += ITEM_BYTES + item.frame().length;
        }
        ByteBuffer buffer = ByteBuffer.allocate(size);
        buffer.put((byte) kind.ordinal()).putLong(offset).putLong(messages).putInt(items.size());
        for (Item item : items) {
            buffer.putInt(item.port()).putInt(item.bucket()).putInt(item.origin());
            buffer.putInt(item.frame().length).put(item.frame());
        }
        return buffer.array();
    }

    /**
     * Reads what {@link #toBytes} gave.
     *
     * @param bytes the row
     */
    public static Parcel fromBytes(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Kind kind = Kind.values()[buffer.get()];
        long offset = buffer.getLong();
        long messages = buffer.getLong();
        int count = buffer.getInt();
        List<Item> items = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            int port = buffer.getInt();
            int bucket = buffer.getInt();
            int origin = buffer.getInt();
            byte[] frame = new byte[buffer.getInt()];
            buffer.get(frame);
            items.add(new Item(port, bucket, origin, frame));
        }
        return new Parcel(kind, offset, messages, items);
    }
}

package org.wallaroo.spark.state;

import java.nio.ByteBuffer;

/**
 * A part of the log of a bucket that {@link LogLoader} is to write.
 *
 * @param target what Spark's shuffle brings to the partition of the bucket
 * @param bucket its number in Spark's store; -1: there is only a note
 * @param state which state this is a piece of, drawn
 * @param piece number of the piece
 * @param pieces how many the state has; 1: this is whole
 * @param note for the driver, as JSON
 * @param entry of the log
 */
record LoadRow(int target, int bucket, long state, int piece, int pieces, byte[] note, byte[] entry) {
    private static final int HEAD_BYTES = 28;

    byte[] toBytes() {
        return ByteBuffer.allocate(HEAD_BYTES + note.length + entry.length)
                .putInt(target).putInt(bucket).putLong(state).putInt(piece).putInt(pieces)
                .putInt(note.length).put(note).put(entry).array();
    }

    static LoadRow fromBytes(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        int target = buffer.getInt();
        int bucket = buffer.getInt();
        long state = buffer.getLong();
        int piece = buffer.getInt();
        int pieces = buffer.getInt();
        byte[] note = new byte[buffer.getInt()];
        buffer.get(note);
        byte[] entry = new byte[buffer.remaining()];
        buffer.get(entry);
        return new LoadRow(target, bucket, state, piece, pieces, note, entry);
    }

    static int targetOf(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getInt();
    }
}

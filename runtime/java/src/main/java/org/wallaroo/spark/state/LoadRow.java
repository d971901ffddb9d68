package org.wallaroo.spark.state;

import java.nio.ByteBuffer;

/**
 * A row with an entry for the first log of a bucket, which {@link FirstLogs} stores after Spark's shuffle.
 *
 * @param target key by which Spark's shuffle brings the row to the partition of the bucket
 * @param bucket number of the bucket in Spark's store; -1 if the row has only a note
 * @param state random number of the state that the piece belongs to
 * @param piece number of the piece
 * @param pieces number of pieces of the state; 1 if the entry has whole states
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

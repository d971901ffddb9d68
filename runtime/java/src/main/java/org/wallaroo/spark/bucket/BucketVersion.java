package org.wallaroo.spark.bucket;

import java.nio.ByteBuffer;

/**
 * Which state of a bucket is meant, and where its log is.
 *
 * @param counter how many calls have ended; 0: there is no state yet
 * @param nonce of the call that ended last
 * @param first number of the oldest entry of the log
 * @param last number after the newest one
 * @param snapshotBytes of the state when it was last written whole
 * @param changeBytes of the changes since then
 */
public record BucketVersion(long counter, long nonce, int first, int last, long snapshotBytes, long changeBytes) {
    public static final BucketVersion EMPTY = new BucketVersion(0, 0, 0, 0, 0, 0);
    static final int BYTES = 40;
    private static final long LARGE_LOG_BYTES = 256L << 20;
    private static final long SMALL_LOG_BYTES = 256L << 10;
    private static final double GOLDEN_RATIO = 0.6180339887498949;

    byte[] toBytes() {
        return ByteBuffer.allocate(BYTES).putLong(counter).putLong(nonce).putInt(first).putInt(last)
                .putLong(snapshotBytes).putLong(changeBytes).array();
    }

    public static BucketVersion fromBytes(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new BucketVersion(buffer.getLong(), buffer.getLong(), buffer.getInt(), buffer.getInt(),
                buffer.getLong(), buffer.getLong());
    }

    /** Returns one whose log ends before an entry. */
    public BucketVersion until(int entry) {
        return new BucketVersion(counter, nonce, first, entry, snapshotBytes, changeBytes);
    }

    /** Says whether the log is to be compacted; the rule is that of {@code worker/compaction.py}. */
    public boolean isCompactionDue(int bucket) {
        double most = Math.min(snapshotBytes * (1 + bucket * GOLDEN_RATIO % 1), LARGE_LOG_BYTES);
        return changeBytes > Math.max(most, SMALL_LOG_BYTES);
    }

    /**
     * Returns the version after a call.
     *
     * @param newNonce of the call
     * @param entries how many entries its changes have
     * @param bytes how large they are
     * @param isWhole whether they replace the log
     */
    public BucketVersion after(long newNonce, int entries, long bytes, boolean isWhole) {
        return isWhole
                ? new BucketVersion(counter + 1, newNonce, last, last + entries, bytes, 0)
                : new BucketVersion(counter + 1, newNonce, first, last + entries, snapshotBytes, changeBytes + bytes);
    }
}

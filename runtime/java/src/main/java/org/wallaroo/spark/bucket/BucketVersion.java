package org.wallaroo.spark.bucket;

import java.nio.ByteBuffer;

/**
 * The version of a bucket's states after a call, and the place of their log in the store. A worker whose live copy has
 * another version asks for the log.
 *
 * @param counter number of calls that have ended; 0 if there is no state yet
 * @param nonce random number of the call that ended last: two attempts of a call have different versions
 * @param first number of the oldest entry of the log
 * @param last number after the newest entry
 * @param snapshotBytes size of the state when it was last written as a whole
 * @param changeBytes size of the changes after that
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

    /** Returns this version for a shorter log: the store then returns only the entries before {@code entry}. */
    public BucketVersion until(int entry) {
        return new BucketVersion(counter, nonce, first, entry, snapshotBytes, changeBytes);
    }

    /** Says whether a call should replace a long log by the whole states; {@code memory/store.py} has the same rule. */
    public boolean isCompactionDue(int bucket) {
        double most = Math.min(snapshotBytes * (1 + bucket * GOLDEN_RATIO % 1), LARGE_LOG_BYTES);
        return changeBytes > Math.max(most, SMALL_LOG_BYTES);
    }

    /**
     * Returns the version after a call.
     *
     * @param newNonce of the call
     * @param entries number of entries of the call's changes
     * @param bytes size of these changes
     * @param isWhole whether these changes replace the log
     */
    public BucketVersion after(long newNonce, int entries, long bytes, boolean isWhole) {
        return isWhole
                ? new BucketVersion(counter + 1, newNonce, last, last + entries, bytes, 0)
                : new BucketVersion(counter + 1, newNonce, first, last + entries, snapshotBytes, changeBytes + bytes);
    }
}
